"""What an encoding does, as numbers and pictures: `measures`, `plots`, and its tables as files for other programs."""
