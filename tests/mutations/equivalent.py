"""Mutants that change nothing that anyone can see, each with the reason. They count neither as caught nor as survivors."""

EQUIVALENT: dict[str, str] = {}
