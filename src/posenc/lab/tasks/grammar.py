"""Pairs of short Chinese sentences with the same characters, one labelled yes and the other no.

    kind       | asks                           | yes                            | no
    agent      | does the larger animal do it?  | 猫追老鼠   老鼠被猫追上了          | 老鼠追猫   猫被老鼠追上了
    negation   | is only a part denied?         | 他们不都是学生   我不很喜欢        | 他们都不是学生   我很不喜欢
    contrast   | is it good in the end?         | 这部电影很无聊，但演员表演精彩       | 演员表演精彩，但这部电影很无聊

    昨天 | 外面下着小雨， | 我坐在窗边， | 听说 | 在河边 | 猫追老鼠 | ，真的 | 。    adjuncts change the length only

A sentence and its twin have the same adjuncts, so only the order of the characters tells them apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import permutations, product

HELD_OUT = 5  # one combination of words in this many is held out
AGENT, NEGATION, CONTRAST = KINDS = ("agent", "negation", "contrast")

LARGER = ("猫", "狗", "狼", "狐狸", "老虎", "豹子")
SMALLER = ("老鼠", "兔子", "小鸡", "松鼠", "小鸟", "青蛙")
ACTIVE = ("追", "抓", "咬", "找")
EITHER = ("追上了", "抓住了", "咬伤了", "吓跑了", "撞倒了", "看见了")  # 猫追上了老鼠, 老鼠被猫追上了

MANY = ("他们", "我们", "她们", "同学们", "孩子们", "客人们", "邻居们", "同事们")
ONE = ("我", "他", "她", "小王", "老李", "妈妈", "爷爷", "经理")
OF_MANY = ("学生", "老师", "医生", "工人", "北方人", "本地人", "新来的")  # 他们不都是学生, 他们不全是学生
DONE_BY_MANY = ("会游泳", "会下棋", "喜欢唱歌", "喜欢喝茶", "住在城里", "认识他", "想去", "吃辣", "抽烟", "早起")
SURE = ("来", "去", "同意", "知道", "答应", "回家", "参加", "带伞")  # 他不一定来
FELT = ("喜欢", "满意", "高兴", "放心", "习惯", "愿意", "舒服", "同意")  # 我不很喜欢

ASPECTS = (  # aspects of one thing that can be praised or criticised: (aspect, praise, criticism)
    (
        ("这部电影", "很好看 很感人 很有趣", "很无聊 很老套 很难懂"),
        ("演员表演", "精彩 自然 到位", "生硬 平淡 夸张"),
        ("故事", "很动人 很新颖", "很混乱 很俗套"),
        ("音乐", "很动听 很优美", "很吵 很单调"),
        ("画面", "很美 很细腻", "很暗 很粗糙"),
    ),
    (
        ("菜", "很好吃 很新鲜 很香", "很咸 很油腻 很难吃"),
        ("服务", "很周到 很热情", "很差 很慢"),
        ("环境", "很干净 很安静", "很脏 很吵"),
        ("价格", "很公道 很便宜", "很贵 很离谱"),
    ),
    (
        ("房间", "很宽敞 很明亮", "很小 很潮湿"),
        ("位置", "很方便 很好找", "很偏 很难找"),
        ("早餐", "很丰盛 很可口", "很简单 很难吃"),
        ("老板", "很和气 很热心", "很冷淡 很凶"),
    ),
    (
        ("屏幕", "很清楚 很明亮", "很暗 很模糊"),
        ("声音", "很响亮 很清楚", "很小 很刺耳"),
        ("样子", "很漂亮 很大方", "很难看 很笨重"),
        ("电池", "很耐用 很结实", "很费电 很容易坏"),
    ),
)
BUT = ("但", "但是", "可是", "不过")
# Combinations that are always held out, because attention is recorded on them.
EXAMPLES = ("猫追老鼠", "演员表演精彩/这部电影很无聊")

DAY = ("今天", "昨天", "前天", "上周末", "那天早上", "上个星期六")
AROUND = ("天刚亮，", "外面下着小雨，", "太阳刚刚下山，", "街上人来人往，", "天上飘着几朵白云，")
DOING = ("我在喝茶，", "我坐在窗边，", "我们一起散步，", "我站在门口等车，", "我和朋友一边走一边聊天，")
SOURCE = ("听说", "据说", "我听说", "有人说", "朋友告诉我", "我在报纸上读到", "住在楼上的邻居告诉我")
PLACE = ("在河边", "在公园里", "在学校门口", "在村子东边的空地上")
AFTER = ("，真的", "，我记得", "，这是真的", "，这事我记得", "，后来我写在了日记里")
END = ("。",)
SLOTS = (DAY, AROUND, DOING, SOURCE, PLACE, AFTER, END)  # each at most once, in this order; the core is after PLACE
CORE = 5


@dataclass(frozen=True)
class Pair:
    """Two orders of the same characters. `words` is the combination that is trained on or held out as a whole."""

    kind: str
    words: str
    yes: str
    no: str

    def __len__(self) -> int:
        return len(self.yes)

    @property
    def held_out(self) -> bool:
        return self.words in EXAMPLES or int(hashlib.sha256(self.words.encode()).hexdigest()[:8], 16) % HELD_OUT == 0


@cache
def pairs() -> tuple[Pair, ...]:
    """All pairs, kind by kind."""
    return (*_agent(), *_negation(), *_contrast())


def _agent() -> Iterator[Pair]:
    for large, small in product(LARGER, SMALLER):
        for verb in (*ACTIVE, *EITHER):
            yield Pair(AGENT, f"{large}{verb}{small}", f"{large}{verb}{small}", f"{small}{verb}{large}")
        for verb in EITHER:
            yield Pair(AGENT, f"{large}{verb}{small}", f"{small}被{large}{verb}", f"{large}被{small}{verb}")


def _negation() -> Iterator[Pair]:
    patterns = (
        *product(MANY, ("都", "全"), map("是{}".format, OF_MANY)),
        *product(MANY, ("都",), DONE_BY_MANY),
        *product(ONE, ("一定",), SURE),
        *product(ONE, ("很",), FELT),
    )
    for who, how, what in patterns:
        yield Pair(NEGATION, f"{who}{what}", f"{who}不{how}{what}", f"{who}{how}不{what}")


def _contrast() -> Iterator[Pair]:
    for aspects in ASPECTS:
        for (good, praise, _), (bad, _, blame) in permutations(aspects, 2):
            for better, worse in product(praise.split(), blame.split()):
                a, b = good + better, bad + worse
                for although, but in product(("", "虽然"), BUT):
                    yield Pair(CONTRAST, f"{a}/{b}", f"{although}{b}，{but}{a}", f"{although}{a}，{but}{b}")


def adjuncts(kind: str, room: int, draw: Callable[[int], int]) -> tuple[str, str]:
    """The adjuncts before and after a core, `room` characters in total; `draw(n)` is one of 0 … n-1.

    First draws the lengths of the slots, uniformly among those that fill the room, then for each slot an adjunct of that
    length. Raises KeyError if no lengths fill the room.
    """
    choices = fillings(kind)[room]
    lengths = choices[draw(len(choices))]
    chosen = []
    for pieces, length in zip(SLOTS, lengths, strict=True):
        fitting = [piece for piece in pieces if len(piece) == length]
        chosen.append(fitting[draw(len(fitting))] if length else "")
    return "".join(chosen[:CORE]), "".join(chosen[CORE:])


@cache
def fillings(kind: str) -> dict[int, list[tuple[int, ...]]]:
    """Lengths of the slots, by the number of characters they fill; 0 for a slot that is left out.

    A sentence that is not an event has no adjunct of location and, after a time or a scene, needs one that names a source.
    """
    slots = dict[int, list[tuple[int, ...]]]()
    for lengths in product(*([0, *sorted({len(piece) for piece in pieces})] for pieces in SLOTS)):
        day, around, doing, source, place, *_ = lengths
        if kind == AGENT or (not place and (source or not (day or around or doing))):
            slots.setdefault(sum(lengths), []).append(lengths)
    return slots


@cache
def alphabet() -> tuple[str, ...]:
    """Every character of every sentence, in order."""
    cores = (character for pair in pairs() for character in pair.yes)
    return tuple(sorted({*cores, *(character for pieces in SLOTS for piece in pieces for character in piece)}))
