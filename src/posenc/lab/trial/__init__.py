"""Runs one trial: the model, its training, its scores, and the measurements of cost and exact properties."""
