"""The readers: one file for each canonical model, which lists every model type that it reads."""
