"""Hypothesis draws the same examples every time and writes nothing. Ctrl-C reaches what tests start, however those run."""

import signal

from hypothesis import settings

settings.register_profile("posenc", derandomize=True, database=None, deadline=None)
settings.load_profile("posenc")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell's & leaves it, and children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
