"""Sentences of tutorials about positions, each with the verdict that posenc computes.

numbers       [n]  the numbers behind the verdict, in the order of the evidence

Fact `claim` is the sentence with its verdict and computed value, `ids` are all sentences in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters as Base
from posenc.learn.claims import LEDGER

ORDER = 170

if TYPE_CHECKING:
    Id = str
else:
    Id = Literal[tuple(LEDGER)]


class Parameters(Base):
    claim: Id = next(iter(LEDGER))


EXPORTED = tuple(Parameters(claim=identifier) for identifier in LEDGER)


def data(params: Parameters) -> Data:
    claim = LEDGER[params.claim]
    evidence = claim.check()
    about = {
        "words": claim.words.as_dict(),
        "verdict": str(evidence.verdict),
        "verdict_words": evidence.verdict.words.as_dict(),
        "value": evidence.value.as_dict(),
    }
    return Data({"numbers": evidence.flat()}, _python(params), {"claim": about, "ids": list(LEDGER)})


def _python(params: Parameters) -> str:
    return f"""from posenc.learn.claims import LEDGER

claim = LEDGER["{params.claim}"]
evidence = claim.check()
numbers = evidence.flat()
print(claim.words.en, evidence.verdict, evidence.value.en, sep="\\n")"""
