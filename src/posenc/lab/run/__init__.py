"""How trials are run: the sweep, its workers, and the time that is left."""
