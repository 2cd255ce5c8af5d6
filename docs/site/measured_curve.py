"""The measured curve of the page of an entry: bits by length in the shipped study, with its seeds, before all others."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from posenc.catalogue import measured
from posenc.support.languages import Language

TASK = "language_model"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 250, 42, 96, 12, 38
HEAD = {"en": "What was measured", "zh": "实测"}
AXIS = {"en": "length, in trained lengths", "zh": "长度（训练长度的倍数）"}
UNIT = {"en": "bits a byte", "zh": "比特/字节"}


AFTER = {"linear": "interpolation", "ntk": "ntk", "yarn": "yarn", "self_extend": "self_extend"}
"""Entries whose frequencies were put into the trained RoPE, by their names in the study."""

CHANGED = {"en": "Put into the trained RoPE, which was not trained further. ", "zh": "换入训练好的 RoPE，不再训练。"}


def arms() -> dict[str, dict[str, Any]]:
    """What the study measured, by the entry on whose page it stands."""
    task = measured.task(TASK)
    after = {arm["name"]: arm for arm in task["after"]}
    trained = {arm["name"]: arm for arm in task["arms"]}
    return trained | {"drope": trained["rope+dropped"]} | {name: after[said] for name, said in AFTER.items()}


def curve(name: str, language: Language) -> str:
    """A figure as HTML, in the theme's colours, with its numbers below it; "" for what the study does not hold."""
    task = measured.task(TASK)
    all_arms = arms()
    if name not in all_arms:
        return ""
    values = [cell["mean"] for arm in all_arms.values() for cell in arm["cells"] if "mean" in cell]
    bottom, top = math.floor(min(values)), math.ceil(max(values))
    factors = [length / task["length"] for length in task["lengths"]]

    def x(factor: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(factor) / math.log(factors[-1])

    def y(bits: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (top - bits) / (top - bottom)

    def line(arm: dict[str, Any], kind: str) -> str:
        points = [(x(f), y(cell["mean"])) for f, cell in zip(factors, arm["cells"], strict=True) if "mean" in cell]
        drawn = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        return f'<polyline class="{kind}" points="{drawn}"><title>{escape(arm["title"][language])}</title></polyline>'

    own = all_arms[name]
    title = own["title"][language]
    parts = []
    for bits in range(bottom, top + 1):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(bits):.1f}" y2="{y(bits):.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(bits) + 4:.1f}" text-anchor="end">{bits}</text>')
    for factor in (1, 2, 4, 8, 16):
        parts.append(f'<text x="{x(factor):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{factor}×</text>')
    middle, axes = (LEFT + WIDTH - RIGHT) / 2, f"{AXIS[language]} · {UNIT[language]}"
    parts.append(f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{axes}</text>')
    parts += [line(arm, "other") for other, arm in all_arms.items() if other != name]
    parts.append(line(own, "one"))
    seeds = [(x(f), y(bits)) for f, cell in zip(factors, own["cells"], strict=True) for bits in cell.get("seeds", ())]
    parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.4"/>' for a, b in seeds]
    last_x, last_y = max((x(f), y(cell["mean"])) for f, cell in zip(factors, own["cells"], strict=True) if "mean" in cell)
    parts.append(f'<text x="{last_x + 6:.1f}" y="{last_y + 4:.1f}">{escape(title)}</text>')
    label = escape(f"{title}: {_numbers(own, factors, language)}")
    return f"""<figure class="measured"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">
{"".join(parts)}
</svg><figcaption>{_caption(own, factors, task, language)}</figcaption></figure>
"""


def _numbers(arm: dict[str, Any], factors: list[float], language: Language) -> str:
    comma = "，" if language == "zh" else ", "
    numbers = [(f, cell["mean"]) for f, cell in zip(factors, arm["cells"], strict=True) if "mean" in cell]
    return comma.join(f"{factor:g}× {bits:.2f}" for factor, bits in numbers)


def _caption(arm: dict[str, Any], factors: list[float], task: dict[str, Any], language: Language) -> str:
    study = measured.experiment(TASK)
    why = next((cell["why"][language] for cell in arm["cells"] if "why" in cell), "")
    numbers, size = _numbers(arm, factors, language), study["size"]
    seeds = max(len(cell.get("seeds", ())) for cell in arm["cells"])
    model = f"{size['n_layers']} × {size['d_model']}"
    changed = "" if "converged" in arm else CHANGED[language]
    if language == "zh":
        said = f"{numbers}。{changed}" + (f"更长时{why}。" if why else "")
        unfinished = "" if arm.get("converged", True) else "训练停止时损失仍在下降。"
        return escape(
            f"{said}{task['title']['zh']}，以 {task['length']} 个字节训练 {task['steps']} 步，模型 {model}；"
            f"点为 {seeds} 个种子，灰线为其他编码。{unfinished}{study['date']}，{study['command']}。"
        )
    said = f"{numbers}. {changed}" + (f"Longer: {why}. " if why else "")
    unfinished = "" if arm.get("converged", True) else "Its loss was still falling when training stopped. "
    return escape(
        f"{said}{task['title']['en']}, trained at {task['length']} bytes for {task['steps']} steps, a model of {model}; "
        f"dots are {seeds} seeds, grey lines the other encodings. {unfinished}{study['date']}, {study['command']}."
    )
