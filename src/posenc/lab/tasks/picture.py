"""Find one object in a small picture relative to another: the task asks for its column and its row.

    length 3, a row of a picture has 8 cells
    tokens    [ ? ! . . . . . .      the first line asks
                a ▲ c b a a d c      cells of the background are drawn at random
                b b d a c c a b
                a d c b ● a b d ]
    targets   [ left above · … ]     ▲ against ●: left, same column or right; above, same row or below

Bidirectional. Token p of a row stands at line p // 8 and column p % 8. A model without positions cannot know either answer.
Taller pictures have objects further apart than in training; the width stays.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field

from posenc.lab.say import say
from posenc.lab.tasks.drawn import Drawn
from posenc.lab.tasks.task import IGNORE, Batch
from posenc.support.languages import Words

WIDTH = 8  # cells of a row
BEFORE, SAME, AFTER = range(3)  # answers: left or above; the same; right or below
ASK_COLUMN, ASK_ROW, BLANK, FIRST, SECOND, BACKGROUND = range(3, 9)  # other tokens; the background's come last
TEXTURES = 4


class Picture(Drawn):
    name: Literal["picture"] = "picture"
    length: int = Field(default=6, ge=1)
    lengths: tuple[int, ...] = (6, 8, 12)

    title: ClassVar[Words] = say("Where in a picture")
    unit: ClassVar[Words] = say("rows of the picture")
    causal: ClassVar[bool] = False

    @property
    def vocabulary(self) -> int:
        return BACKGROUND + TEXTURES

    def tokens(self, length: int) -> int:
        return WIDTH * (length + 1)

    def draw(self, rows: int, length: int, random: torch.Generator) -> Batch:
        cells = torch.randint(BACKGROUND, BACKGROUND + TEXTURES, (rows, WIDTH * length), generator=random)
        first = torch.randint(WIDTH * length, (rows, 1), generator=random)
        second = (first + torch.randint(1, WIDTH * length, (rows, 1), generator=random)) % (WIDTH * length)
        cells = cells.scatter(1, first, FIRST).scatter(1, second, SECOND)
        questions = torch.tensor([ASK_COLUMN, ASK_ROW] + [BLANK] * (WIDTH - 2)).expand(rows, WIDTH)
        tokens = torch.cat([questions, cells], dim=1)
        targets = torch.full_like(tokens, IGNORE)
        across, down = first % WIDTH - second % WIDTH, first // WIDTH - second // WIDTH
        targets[:, :2] = torch.cat([across, down], dim=1).sign() + SAME
        return Batch(tokens, targets)

    def different(self, length: int) -> int:
        cells = WIDTH * length
        return int(cells * (cells - 1) * TEXTURES ** (cells - 2))

    def chance(self, length: int) -> float:
        """Chance: the most frequent pair of answers.

        Of cells × (cells - 1) pairs, so many are left and above, left in the same row, or above in the same column.
        """
        left, above = WIDTH * (WIDTH - 1) // 2, length * (length - 1) // 2
        most = max(left * above, left * length, WIDTH * above)
        return most / (WIDTH * length * (WIDTH * length - 1))
