"""What decides the claims of the founding notes: of each claim of the ledger a function that computes it, by its name."""
