"""Queries multiplied by a function of their position, by name: one file for each formula of `encodings.temperature`."""
