"""The readers: one file for each way of doing it, each registered for the model types that do it so."""
