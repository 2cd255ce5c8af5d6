"""Encodings put together as a model has them, by name: each file has a function, and its page the facts."""
