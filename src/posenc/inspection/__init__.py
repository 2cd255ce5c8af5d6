"""What a configuration means for a person: figures, remarks, what breaks beyond the trained length, and how to go on."""
