"""TMRoPE's positions: time is counted in real time, so that sound and picture of one moment have the same number.

    word n             (n, n, n)
    audio frame s      all three T + s, one for every 40 ms
    patch (τ, y, x)    (T + ⌊25 · seconds of frame τ⌋, T + y, T + x)

Xu et al. 2025, "Qwen2.5-Omni Technical Report", section 2.2, with the order of transformers' code: every two seconds, the
patches of that time come first, then its sound. What follows starts one after the largest number so far. The start and end
tokens of picture and sound share one number in the code (`marks`). Where frames lie more than two seconds apart, that code
puts sound later than here, since it closes one interval for each frame.
"""

from __future__ import annotations

import math

import torch

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


@checked
def tmrope_ids(
    text: int,
    height: int,
    width: int,
    *,
    frames: int = 1,
    seconds: float = 1.0,
    audio: int = 0,
    after: int = 0,
    marks: int = 0,
    rate: int = 25,
    interval: float = 2.0,
) -> Positions:
    """Coordinates (time, height, width) of text, a video with its sound, and text after it.

    text           words before
    height, width  patches of a frame, after merging
    frames         of the video, after merging
    seconds        from one frame to the next
    audio          audio frames, one for every 1/rate seconds
    after          words after it
    marks          tokens that share one number before the video, and as many after it; 2 with sound in Qwen2.5-Omni
    rate           positions of a second
    interval       seconds after which patches and sound take turns

    Raises ValueError for sizes that are not positive.
    """
    checks.whole(0, text=text, after=after, audio=audio, marks=marks)
    checks.whole(height=height, width=width, frames=frames, rate=rate)
    checks.positive(seconds=seconds, interval=interval)
    first = text + (1 if marks else 0)
    at = torch.tensor([math.floor(round(frame * seconds * rate, 9)) for frame in range(frames)])
    video = torch.cartesian_prod(at, torch.arange(height), torch.arange(width)).T
    sound = torch.arange(audio).expand(3, -1)
    both = torch.cat([video, sound], dim=1)
    turn = both[0].double().div(rate * float(interval)).floor() * 2
    turn[video.shape[1] :] += 1
    content = both[:, turn.argsort(stable=True)] + first
    following = int(content.max()) + 1
    parts = [torch.arange(text).expand(3, -1), torch.full((3, marks), text), content, torch.full((3, marks), following)]
    parts.append((torch.arange(after) + following + (1 if marks else 0)).expand(3, -1))
    return Positions.mrope(torch.cat(parts, dim=1)[:, None])
