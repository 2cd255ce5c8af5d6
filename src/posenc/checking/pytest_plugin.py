"""A plugin for pytest: every law of `posenc.check` as a test of its own.

    @pytest.mark.posenc(rotate=my_rope, expect={"layout": "half", "base": 10000.0})
    def test_my_rope(law):
        law()

The mark takes the arguments of `posenc.check`. A law that is not applicable or not declared is skipped with the reason.
pytest finds the plugin by itself where posenc is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

MARK = "posenc"
ARGUMENT = "law"


class LawOf:
    """One law on one implementation: calling it passes, skips, or fails with the law's report."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self.name, self.options = name, options

    def __call__(self) -> None:
        from posenc.checking import check
        from posenc.checking.checking import TAKEN
        from posenc.checking.diagnosis import EXPECTED

        laws = [] if self.name in (EXPECTED, TAKEN) else [self.name]  # these two are said of every report
        result = check(**{**self.options, "laws": laws})[self.name]
        if result.verdict == "failed":
            pytest.fail(str(result), pytrace=False)
        if result.verdict != "passed":
            pytest.skip(f"{result.verdict}: {result.detail}")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}(**options): try the laws of posenc.check(**options), one test for each")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker(MARK)
    if mark is None:
        return
    if ARGUMENT not in metafunc.fixturenames:
        raise pytest.UsageError(
            f"{metafunc.function.__name__}: a test marked {MARK} takes the argument {ARGUMENT!r} and calls it"
        )
    from posenc.checking.checking import law_names

    laws = [LawOf(name, mark.kwargs) for name in law_names(**mark.kwargs)]
    metafunc.parametrize(ARGUMENT, laws, ids=[law.name for law in laws])
