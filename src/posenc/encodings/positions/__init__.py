"""Ways to number tokens, by name: each file has a function that makes `Positions`, and its page the facts."""
