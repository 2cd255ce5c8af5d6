"""Runs trials: the sweep, its workers, the time budget, and the verification of old results."""
