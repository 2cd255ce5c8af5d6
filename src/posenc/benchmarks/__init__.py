"""`posenc bench`: correctness first, then time as ratios to a floor and to every installed peer, on the same inputs.

    plan      which comparisons there are, as data; needs no torch
    contest   one comparison: its floor, its contenders, the exact result
    gate      each contender's error against fp64; a red gate shows no speed of ours
    timing    rounds in which contenders take turns; ratios within a round
    weather   what other processes took meanwhile; rounds they disturbed are left out
    memory    peak memory, a process for each contender
    worker    one process for each allocator setting and thread count; runner starts them
    bars      what was promised, as data, and whether it was met
    report    the table in the terminal; markdown and figure for a folder

rope, bias, table, step are the four benchmarks; truth holds their formulas in fp64, and nothing of posenc's own code.
"""
