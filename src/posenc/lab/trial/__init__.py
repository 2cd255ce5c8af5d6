"""One trial: the model, its training and its scores."""
