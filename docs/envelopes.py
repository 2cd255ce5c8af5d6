"""The picture of order blindness: numbered envelopes against a heap, an array against a multiset."""

from __future__ import annotations

BLUE, RED, INK, GREY, PAPER = "#15448f", "#c4563c", "#2b2f3a", "#7a7e88", "#fbfaf7"
TEXT = {
    "en": (
        "With positions: numbered envelopes, an array",
        "two sentences",
        "Without: a heap, a multiset",
        "one heap for both",
        "Not a set: repeats count. 人 lies here twice, and that much attention still sees.",
    ),
    "zh": (
        "有位置：编了号的信封，像数组",
        "两句话",
        "没有位置：一堆信封，像多重集",
        "两句话是同一堆",
        "不是集合：重复的要计数。这里有两个“人”，这一点注意力仍看得见。",
    ),
}


def envelope(x: float, y: float, word: str, number: int | None = None, tilt: float = 0) -> str:
    stamp = (
        ""
        if number is None
        else (
            f'<circle cx="66" cy="12" r="13" fill="{RED}"/>'
            f'<text x="66" y="17" fill="white" font-size="15" text-anchor="middle">{number}</text>'
        )
    )
    return (
        f'<g transform="translate({x} {y}) rotate({tilt} 38 26)">'
        f'<rect width="76" height="52" rx="4" fill="white" stroke="{BLUE}" stroke-width="1.6"/>'
        f'<path d="M1 2 L38 25 L75 2" fill="none" stroke="{BLUE}" stroke-width="1.2" opacity=".55"/>'
        f'<text x="38" y="43" font-size="19" text-anchor="middle" fill="{INK}">{word}</text>{stamp}</g>'
    )


def picture(language: str) -> str:
    array, two, heap, one, note = TEXT[language]
    rows = [("人人爱我", 96), ("我爱人人", 196)]
    ordered = "".join(envelope(40 + 96 * n, y, word, n) for words, y in rows for n, word in enumerate(words))
    thrown = "".join(
        envelope(x, y, word, tilt=tilt)
        for word, x, y, tilt in [("人", 540, 108, -13), ("我", 640, 150, 9), ("爱", 570, 190, 22), ("人", 690, 100, 15)]
    )
    label = f'font-size="17" fill="{INK}" font-weight="600"'
    small = f'font-size="14" fill="{GREY}"'
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 840 330" role="img" '
        'font-family="system-ui, Noto Sans CJK SC, PingFang SC, Microsoft YaHei, sans-serif">'
        f'<title>{array}; {heap}</title><rect width="840" height="330" rx="10" fill="{PAPER}"/>'
        f'<text x="40" y="46" {label}>{array}</text><text x="40" y="70" {small}>人人爱我 ≠ 我爱人人 · {two}</text>'
        f'<text x="510" y="46" {label}>{heap}</text><text x="510" y="70" {small}>{{人, 人, 爱, 我}} · {one}</text>'
        f'<line x1="466" y1="30" x2="466" y2="262" stroke="{GREY}" opacity=".4"/>{ordered}{thrown}'
        f'<text x="40" y="300" {small}>{note}</text></svg>\n'
    )
