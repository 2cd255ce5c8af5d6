"""What a configuration means: figures, remarks, what happens beyond the trained length, and how to extend it."""
