"""How a law ends other than by holding."""


class LawBroken(AssertionError):
    """An encoding does not do what the law says; the message names law, encoding and by how much."""


class NotApplicable(Exception):
    """The law says nothing about this encoding in this setting; the message says why."""
