"""Which positional encoding a table of numbers is, and what is wrong with it.

formula.py     the tables that are known: layouts, and the mistakes that the field makes
fit.py         from numbers to a formula, by least squares
findings.py    what was found, in words
recogniser.py  recognise(table)
"""

from __future__ import annotations

from posenc.checking.recognition.findings import Observation as Observation
from posenc.checking.recognition.formula import Formula as Formula
from posenc.checking.recognition.recogniser import Recognised as Recognised
from posenc.checking.recognition.recogniser import recognise as recognise
