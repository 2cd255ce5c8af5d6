"""What ends a check without a report, and what a law says instead of a measurement."""

from posenc.checking.result import Verdict
from posenc.support.languages import Words


class NotExpressible(NotImplementedError):
    """An adapter raises it for an input that its implementation has no argument for, such as positions with gaps."""


class Unusable(ValueError):
    """The callable fails on the plainest input of its seam, so that no law can be tried; the message says how."""


class NoTable(ValueError):
    """A file that holds no table; `words` say why, in both languages."""

    def __init__(self, words: Words) -> None:
        self.words = words
        super().__init__(words.en)


class FewerChannels(ValueError):
    """The result has the shape of the tokens but for fewer channels."""


class LawBroken(AssertionError):
    """The subject does not do what the law says; the message says by how much, or what happened instead.

    bug   the class of bug that it shows, a key of BUGS; "": that of the law
    """

    def __init__(self, message: str, bug: str = "") -> None:
        super().__init__(message)
        self.bug = bug


class Declined(Exception):
    """The law says nothing about this subject; `verdict` says whether that is the law's or the subject's doing."""

    def __init__(self, verdict: Verdict, why: str) -> None:
        super().__init__(why)
        self.verdict = verdict


class NotApplicable(Declined):
    """The law says nothing about this subject; the message says why."""

    def __init__(self, why: str) -> None:
        super().__init__("not applicable", why)
