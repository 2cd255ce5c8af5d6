"""What the founding notes teach: the walk through their figures, and the ledger of their claims."""
