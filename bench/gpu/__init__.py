"""What is measured on a GPU, in steps that each print Markdown: `make gpu` runs them (tools/gpu.py).

    correctness       the laws, with every backend and dtype
    long_attention    biases and windows against attention without one, at growing lengths
    rotation          rotation of a part of the channels, beside `python -m bench rope`
    compiled_kernels  registers, memory and traffic of the Triton kernels; needs no GPU

All but the last take any device, so that their logic is tested on the CPU.
"""
