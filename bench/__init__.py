"""`python -m bench`: checks correctness, then measures time relative to a floor and to every installed peer.

    plan      which comparisons there are, as data; needs no torch
    contest   one comparison: its floor, its contenders, the exact result
    gate      each contender's error against fp64; if ours is wrong, its speed is not shown
    timing    rounds in which contenders take turns; ratios within a round
    cpu_contention  CPU time of other processes; disturbed rounds are left out
    memory    peak memory, a process for each contender
    worker    one process for each allocator setting and thread count; runner starts them
    bars      performance targets, as data, and whether they are met
    report    the table in the terminal; markdown and figure for a folder

rope, bias, visible, call, table, layer, model, attached, step are the nine benchmarks; truth holds the formulas of the
first five in fp64, without code of posenc; attached is compared with transformers in fp64, the others with the reference
backend.
"""
