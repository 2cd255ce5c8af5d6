"""What a configuration means for a person: figures, findings, what breaks beyond the trained length, and how to go on."""
