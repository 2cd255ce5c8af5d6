"""What is kept of a trial, and under which key."""
