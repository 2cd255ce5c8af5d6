"""RoPE with scaled frequencies, by name: one file and one page for each scaling of `posenc.frequencies`."""
