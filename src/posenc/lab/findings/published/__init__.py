"""Compares published claims with the results of the lab."""
