"""Pages of the numbers that multiply queries by their position; `encodings.bases.temperature` makes them."""
