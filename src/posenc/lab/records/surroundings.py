"""What besides the code decides the last bits of a trial, stored and here.

torch       its version
device      the instruction set that torch uses (ATEN_CPU_CAPABILITY names a narrower one), or the GPU
cpu_model   the processor: libraries below torch choose their code by it
kernels     the instructions of posenc's own kernels (POSENC_KERNELS names narrower ones), which give the same bits with all

Sums round differently with another torch, device or processor, and training amplifies that. Other kernels explain nothing.
Needs no torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from posenc import kernels
from posenc.kernels import processor

NAMES, ROUNDING = ("torch", "device", "cpu_model", "kernels"), ("torch", "device", "cpu_model")
# What ATEN_CPU_CAPABILITY may be on x86-64, and the features without which torch does not use it.
INSTRUCTIONS: Mapping[str, frozenset[str]] = {
    "AVX512": frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"}),
    "AVX2": frozenset({"avx2", "fma"}),
    "DEFAULT": frozenset(),
}


class Surrounding(NamedTuple):
    """One of NAMES. `stored` is None where the record does not say."""

    name: str
    stored: str | None
    here: str | None

    @property
    def alike(self) -> bool:
        return self.stored is not None and self.stored == self.here

    @property
    def rounds(self) -> bool:
        """Whether it may explain other bits: it is another one, or the record does not say."""
        return self.name in ROUNDING and not self.alike

    def __str__(self) -> str:
        return f"{self.name} not recorded" if self.stored is None else f"{self.name} {self.here} instead of {self.stored}"


def here() -> dict[str, str]:
    """What a record adds about the machine on which it was made."""
    return {"cpu_model": processor.identified(), "kernels": kernels.instructions() or "plain torch"}


def compared(stored: Mapping[str, Any], again: Mapping[str, Any]) -> tuple[Surrounding, ...]:
    """Of two records: what each says about NAMES."""
    before, after = ({**about["machine"], **about["provenance"]} for about in (stored, again))
    return tuple(Surrounding(name, before.get(name), after.get(name)) for name in NAMES)


def capability(around: Sequence[Surrounding]) -> str | None:
    """The value of ATEN_CPU_CAPABILITY with which this machine uses the record's instructions; None where it does already,
    cannot, or the record does not say."""
    (device,) = (surrounding for surrounding in around if surrounding.name == "device")
    if device.alike or device.stored is None or device.here is None:
        return None
    (architecture, _, wanted), (architecture_here, _, _) = device.stored.partition(" "), device.here.partition(" ")
    needed = INSTRUCTIONS.get(wanted)
    if architecture != architecture_here or needed is None or not needed <= processor.features():
        return None
    return wanted.lower()
