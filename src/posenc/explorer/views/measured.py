"""What the shipped study measured of each encoding, with every seed, and what each costs.

bits             [a, n]     bits per byte at 1, 2 and 8 times the trained length, mean of the seeds; NaN: the fact `why`
seeds            [a, s, n]  each seed; NaN where an encoding has fewer
lowest, highest  [a, n]     of the seeds

Legend: a encodings of the study, s seeds, n lengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from posenc.explorer.data import Data, computed
from posenc.explorer.measured_table import FACTORS, TASK, table
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.parameters import encodings
from posenc.explorer.say import say

ORDER = 155

if TYPE_CHECKING:
    MethodOrNone = str
else:
    MethodOrNone = encodings(none=say("none"))


class Parameters(Base):
    also: MethodOrNone = "none"


EXPORTED = (Parameters(),)

PROGRAM = f"""import numpy as np
from posenc.catalogue import measured

task = measured.task("{TASK}")
columns = [task["lengths"].index(factor * task["length"]) for factor in {FACTORS}]
mean, each, *_ = measured.curves("{TASK}")
names = [arm["name"] for arm in task["arms"]]
bits, seeds = mean[:, columns], each[:, :, columns]
lowest, highest = np.fmin.reduce(seeds, axis=1), np.fmax.reduce(seeds, axis=1)"""


def data(params: Parameters) -> Data:
    shown = [] if params.also == "none" else [params.also]
    return computed(PROGRAM, ("bits", "seeds", "lowest", "highest"), {"measured": table(shown)})
