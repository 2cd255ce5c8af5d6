"""Commands of `posenc`. At module level they import neither torch nor transformers: --help must be quick."""
