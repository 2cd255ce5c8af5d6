"""Breaks posenc on purpose, one piece of syntax at a time, to see whether tests and laws notice."""
