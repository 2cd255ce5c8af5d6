"""RoPE with scaled frequencies, by name: one file for each scaling of `posenc.frequencies`, with its catalogue entry."""
