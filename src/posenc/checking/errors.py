"""Exceptions that end a check without a report."""


class NotExpressible(NotImplementedError):
    """An adapter raises it for an input that its implementation has no argument for, such as positions with gaps."""


class Unusable(ValueError):
    """The callable fails on the plainest input of its seam, so that no law can be tried; the message says how."""


class FewerChannels(ValueError):
    """The result has the shape of the tokens but for fewer channels."""
