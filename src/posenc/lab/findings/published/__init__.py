"""What others published, compared with what was found here."""
