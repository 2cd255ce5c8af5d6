"""The commands of `posenc`, one file each. Their module level imports neither torch nor matplotlib: --help must be quick."""
