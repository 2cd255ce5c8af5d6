"""What commands print with: wrapped text, progress, interruption, the language. Imports no torch: --help must be quick."""
