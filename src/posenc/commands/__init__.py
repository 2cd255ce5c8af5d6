"""The commands of `posenc`, one file each. Module level imports neither torch nor matplotlib: --help must be quick."""
