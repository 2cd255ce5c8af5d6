"""The laws for anyone's implementation: `posenc.check(rotate=f)` and `posenc check FILE.py:NAME`.

    report = posenc.check(rotate=f)      f(x [b, h, t, d], positions [b, t]) -> [b, h, t, d]
    report.passed, print(report)

The laws need no formula: they compare an implementation with itself in other calls. What it is (layout, base, slopes,
buckets) is identified from the numbers. `posenc.laws` tries the laws of encodings with the same engine.

    checking.py      check(...): one implementation in, a report out
    subject.py       the seams' signatures, and how the implementation is called
    table.py         every law's name and sentence, for callables, encodings and models
    engine.py        trying, shrinking, confirming
    arrangements.py tokenwise.py rotation.py biases.py attention.py surroundings.py      the laws of callables
    caches.py        check_cache(write, read, crop): the laws of anyone's cache
    laws/            the laws of encodings; those of models are in posenc.transformers
    bugs.toml        the classes of bugs, with threads
    diagnosis.py     from the laws that fail and the identity to one bug and its fix
    identify/        what the implementation is
    adapters.py      from the usual shapes of libraries to the seams
"""

from typing import TYPE_CHECKING

from posenc.support.lazy import public

if TYPE_CHECKING:
    from posenc.checking.checking import check as check
    from posenc.checking.errors import NotExpressible as NotExpressible
    from posenc.checking.errors import Unusable as Unusable
    from posenc.checking.result import Identity as Identity
    from posenc.checking.result import Report as Report
    from posenc.checking.result import Result as Result

__getattr__, __dir__ = public(
    __name__,
    {
        "check": "checking",
        "NotExpressible": "errors",
        "Unusable": "errors",
        "Identity": "result",
        "Report": "result",
        "Result": "result",
    },
)
