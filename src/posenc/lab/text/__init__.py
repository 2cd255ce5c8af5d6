"""The texts that the lab trains on: posenc's own prose, and a user's file."""
