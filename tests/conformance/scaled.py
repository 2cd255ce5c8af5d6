"""Rotations with scaled frequencies, written out from the papers: right ones, RIGHT, and with usual slips, SLIPS.

posenc.check passes the right ones with a true sentence, and names each slip. Legend: d channels, w a frequency.
"""

import math

import torch

from conformance.correct import Partial, Rope

LLAMA3 = 500_000.0
# Factors of LongRoPE, of a model whose heads have 96 channels.
LONG = [1.08, 1.11, 1.14, 1.34, 1.59, 1.6, 1.62, 2.62, 3.23, 3.23, 4.79, 7.4, 7.7, 9.09, 12.2, 17.67, 24.46, 28.57, 30.42]
LONG += [30.84, 32.59, 32.93, 42.32, 44.96, 50.34, 50.45, 57.55, 57.93, 58.21, 60.14, 62.61, 62.62, 62.71, 63.14, 63.14]
LONG += [63.77, 63.93, 63.96, 63.97, 64.03, 64.07, 64.08, 64.12, 64.41, 64.48, 64.51, 64.53, 64.84]
OF_LONG = math.sqrt(1 + math.log(32) / math.log(4096))  # magnitude of 131 072 tokens, trained at 4096


def scaled(frequencies, magnitude=1.0, cls=Rope):
    """A rotation with the frequencies of a function of d, and cosines and sines times the magnitude."""

    class Scaled(cls):
        def frequencies(self, d):
            return torch.tensor(frequencies(d), dtype=torch.float32)

        def turn(self, x, cos, sin):
            return super().turn(x, magnitude * cos, magnitude * sin)

    return Scaled


def plain(d, base=10000.0):
    return [base ** (-2 * i / d) for i in range(d // 2)]


def linear(factor, base=10000.0):
    return lambda d: [w / factor for w in plain(d, base)]


def ntk(factor, base=10000.0, exponent=lambda d: d / (d - 2)):
    return lambda d: plain(d, base * factor ** exponent(d))


def ramp(d, length, base, fast=32.0, slow=1.0, *, truncate=True, halves=2):
    """YaRN's share of each pair that is divided. `halves` is 2 in its formula."""
    low, high = (d * math.log(length / (turns * 2 * math.pi)) / (halves * math.log(base)) for turns in (fast, slow))
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    return [min(max((i - low) / (high - low), 0.0), 1.0) for i in range(d // 2)]


def yarn(factor, length=4096, base=10000.0, reverse=False, **options):
    def frequencies(d):
        shares = ramp(d, length, base, **options)
        return [w * (share if reverse else 1 - share) + w / factor * (1 - share if reverse else share)
                for w, share in zip(plain(d, base), shares, strict=True)]  # fmt: skip

    return frequencies


def magnitude(factor):
    return 0.1 * math.log(factor) + 1


def llama3(factor, length=8192, base=LLAMA3, low=1.0, high=4.0, wave=2 * math.pi, blend=lambda keep, w, s: keep):
    """`wave` over a frequency is its wavelength; `blend` may change the share that is kept between the bands."""

    def frequencies(d):
        found = []
        for w in plain(d, base):
            turns = length * w / wave
            if turns > high:
                found.append(w)
            elif turns < low:
                found.append(w / factor)
            else:
                keep = blend((turns - low) / (high - low), turns, (low, high)) if low < high else 1.0
                found.append((1 - keep) * w / factor + keep * w)
        return found

    return frequencies


def along_wavelengths(keep, turns, bands):
    low, high = bands
    return (1 / low - 1 / turns) / (1 / low - 1 / high)


def swapped(factor, length=8192, base=LLAMA3):
    """Llama 3's code with low_freq_factor 4 and high_freq_factor 1: no wavelength is between."""
    return lambda d: [w if length * w / (2 * math.pi) > 1 else w / factor for w in plain(d, base)]


def longrope(factors, *, multiplied=False):
    return lambda d: [w * by if multiplied else w / by for w, by in zip(plain(d), factors, strict=True)]


WIDE, OF_96 = {"width": 128}, {"width": 96}
SHORT = [1 + 0.02 * i for i in range(48)]
# name -> (make, how it is checked, the verdict, a part of the sentence)
RIGHT = {
    **{f"linear {f}": (scaled(linear(f)), {}, "passed", f"linear, factor {f}, angles") for f in (2, 8, 3.3)},
    "linear, odd base": (scaled(linear(4, 12345.0)), {}, "unusual", "base 12 345, linear, factor 4"),
    **{f"ntk {f}": (scaled(ntk(f)), {}, "passed", f"ntk, factor {f} from base 10000") for f in (2, 4, 1000)},
    "ntk of Llama 3": (scaled(ntk(4, LLAMA3)), {}, "passed", "ntk, factor 4 from base 500000"),
    "dynamic ntk of one length": (scaled(ntk(2 * 8192 / 2048 - 1)), {}, "passed", "ntk, factor 7 from base 10000"),
    **{
        f"yarn {f} from {n} at base {base:g}, d = {d}": (
            scaled(yarn(f, n, base), magnitude(f)),
            {"width": d},
            "passed",
            f"yarn, factor {f}, original length {n}",
        )
        for f, n, base, d in ((4, 4096, 1e4, 64), (40, 4096, 1e4, 64), (4, 32768, 1e6, 128), (4, 2048, 1e4, 8))
    },
    "yarn of Qwen 3": (
        scaled(yarn(4, 40960, 1e6), magnitude(4)),
        WIDE,
        "passed",
        "yarn, factor 4, original length 35755 to 43845",
    ),
    "yarn, odd base": (scaled(yarn(8, 4096, 12345.0), magnitude(8)), {}, "unusual", "base 12 345, yarn, factor 8"),
    "yarn of gpt-oss": (
        scaled(yarn(32, 4096, 150_000.0, truncate=False), magnitude(32)),
        {},
        "passed",
        "yarn, no truncation, factor 32, original length 4096",
    ),
    "yarn, other betas": (
        scaled(yarn(4, fast=16.0, slow=2.0), magnitude(4)),
        {},
        "unusual",
        "yarn, factor 4, ramp from pair 12 to pair 21",
    ),
    "yarn, ramp without an end": (
        scaled(yarn(4, 131_072), magnitude(4)),
        {},
        "passed",
        "yarn, factor 4, original length 131072",
    ),
    "yarn of a quarter": (
        scaled(yarn(4), magnitude(4), Partial),
        {},
        "passed",
        "16 of 64 channels turn, base 10 000, yarn",
    ),
    **{
        f"llama3 {f} from {n} at base {base:g}, d = {d}": (
            scaled(llama3(f, n, base)),
            {"width": d},
            "passed",
            f"llama3, factor {f}, original length {n}",
        )
        for f, n, base, d in (
            (8, 8192, LLAMA3, 128),
            (32, 8192, LLAMA3, 64),
            (8, 6000, LLAMA3, 64),
            (3, 2**20, LLAMA3, 128),
        )
    },
    "llama3 of Scout": (
        scaled(llama3(16, low=1.0, high=1.0)),
        WIDE,
        "passed",
        "llama3, factor 16, original length 8192, low and",
    ),
    "llama3, other bands": (scaled(llama3(8, high=2.0)), WIDE, "unusual", "high_freq_factor 2 times low_freq_factor"),
    "longrope": (scaled(longrope(LONG), OF_LONG), OF_96, "passed", "base 10 000, longrope, factors 1.08 to 64.84"),
    "longrope, short factors": (scaled(longrope(SHORT), OF_LONG), OF_96, "passed", "longrope, factors 1 to 1.94"),
    "longrope, no longer": (scaled(longrope(LONG)), OF_96, "unusual", "longrope, factors 1.08 to 64.84"),
}
# name -> (make, how it is checked, the name of the diagnosis, a part of its sentence)
SLIPS = {
    "yarn without magnitude": (scaled(yarn(4)), {}, "magnitude", "the magnitude is 1 instead of YaRN's 1.13863"),
    "yarn's magnitude squared": (scaled(yarn(4), magnitude(4) ** 2), {}, "magnitude", "its square: it is applied twice"),
    "yarn's magnitude by log10": (
        scaled(yarn(4), 0.1 * math.log10(4) + 1),
        {},
        "magnitude",
        "the magnitude is 1.06021 instead of YaRN's 1.13863",
    ),
    "yarn's betas swapped": (
        scaled(yarn(4, fast=1.0, slow=32.0), magnitude(4)),
        {},
        "scaling reversed",
        "fast pairs are divided",
    ),
    "yarn's betas swapped, wide": (
        scaled(yarn(4, 32768, 1e6, fast=1.0, slow=32.0), magnitude(4)),
        WIDE,
        "scaling reversed",
        "fast pairs are divided",
    ),
    "yarn's ramp reversed": (scaled(yarn(4, reverse=True), magnitude(4)), {}, "scaling reversed", "fast pairs are divided"),
    "yarn multiplies": (scaled(yarn(1 / 4), magnitude(4)), {}, "factors multiplied", "slow pairs are multiplied by 4"),
    "yarn's ramp over d": (
        scaled(yarn(4, halves=1), magnitude(4)),
        {},
        "scaling",
        "YaRN's ramp begins at pair 20, and no pair is divided by more than 1.465",
    ),
    "yarn without a ramp": (
        scaled(lambda d: [w if i < 15 else w / 4 for i, w in enumerate(plain(d))], magnitude(4)),
        {},
        "scaling",
        "pairs from 15 on are divided by 4, and no pair is between",
    ),
    "llama3's blend reversed": (
        scaled(llama3(8, blend=lambda keep, *_: 1 - keep)),
        WIDE,
        "blend reversed",
        "the two weights of the blend are exchanged",
    ),
    "llama3's blend reversed, d = 64": (
        scaled(llama3(32, blend=lambda keep, *_: 1 - keep)),
        {},
        "blend reversed",
        "the two weights of the blend are exchanged",
    ),
    "llama3's factors swapped": (scaled(swapped(8)), WIDE, "scaling", "divided by 8, and no pair is between"),
    "llama3 multiplies": (scaled(llama3(1 / 8)), WIDE, "factors multiplied", "slow pairs are multiplied by 8"),
    "llama3 without 2π": (scaled(llama3(8, wave=1.0)), WIDE, "scaling", "its original length is 8192 times 2π"),
    "llama3 along wavelengths": (
        scaled(llama3(8, blend=along_wavelengths)),
        WIDE,
        "scaling",
        "along the wavelength and not along the number of turns",
    ),
    "llama3 reversed": (
        scaled(lambda d: [w + w / 8 - s for w, s in zip(plain(d, LLAMA3), llama3(8)(d), strict=True)]),
        WIDE,
        "scaling reversed",
        "fast pairs are divided",
    ),
    "longrope multiplies": (
        scaled(longrope(LONG, multiplied=True), OF_LONG),
        OF_96,
        "factors multiplied",
        "multiplied by the factors of the scaling that should divide them",
    ),
    "longrope multiplies, no magnitude": (
        scaled(longrope(LONG, multiplied=True)),
        OF_96,
        "factors multiplied",
        "multiplied by the factors of the scaling that should divide them",
    ),
    "longrope's magnitude squared": (
        scaled(longrope(LONG), OF_LONG**2),
        OF_96,
        "magnitude",
        "its square: it is applied twice",
    ),
    "linear multiplies": (scaled(linear(1 / 4)), {}, "scaling", "multiplied by one factor above 1"),
    "ntk without exponent": (scaled(ntk(4, exponent=lambda d: 1.0)), {}, "base", "no known model has base 40000"),
    "ntk's exponent turned round": (
        scaled(ntk(4, exponent=lambda d: (d - 2) / d)),
        {},
        "base",
        "NTK's exponent is (d-2)/d, and not d/(d-2)",
    ),
    "ntk's exponent of pairs": (scaled(ntk(4, exponent=lambda d: d / (d - 4))), {}, "base", "NTK's exponent is d/(d-4)"),
    "ntk's exponent of the head": (
        scaled(ntk(4, exponent=lambda d: 4 * d / (4 * d - 2)), cls=Partial),
        {},
        "base",
        "is that of the head, and not of the channels that turn",
    ),
    "ntk's base divided": (scaled(ntk(1 / 4)), {}, "base", "NTK's base is divided by factor^(d/(d-2))"),
}
