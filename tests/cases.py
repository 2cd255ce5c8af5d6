"""Small cases by the hundred, in one test: pytest needs longer to set up a case than such a case takes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def cases(names: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize(names, values)`, but one test, which names every case that fails.

    For bodies that change nothing: their fixtures are the same for all cases.
    """
    split, every = names.replace(",", " ").split(), list(values)

    def over(body: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(body)
        def test(**fixtures: Any) -> None:
            assert every, f"no case of {names}"
            failed = []
            for one in every:
                given = dict(zip(split, one if len(split) > 1 else (one,), strict=True))
                try:
                    body(**fixtures, **given)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"the case {given}")
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(every)} cases", failed)

        whole = inspect.signature(body)
        rest = [one for name, one in whole.parameters.items() if name not in split]
        test.__signature__ = whole.replace(parameters=rest)  # type: ignore[attr-defined]
        return test

    return over
