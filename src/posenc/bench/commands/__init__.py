"""Commands of `posenc`. At module level they import neither torch nor matplotlib: --help must be quick."""
