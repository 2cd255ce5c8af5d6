"""Stores trials: the record of a trial, its fingerprint and provenance, and the folder of results."""
