r"""The one table and picture of a comparison for a paper: table.tex (booktabs) and figure.pdf.

    \usepackage{booktabs, graphicx}
    \input{table}  \includegraphics[width=\linewidth]{figure}

The main task, every encoding in the order of the report: mean ± standard deviation over seeds at every scored length. The
newcomer is bold. Encodings that did not learn the trained length, or still improved at the end of training, are marked.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from posenc.lab.findings.titles import main_task, title
from posenc.lab.findings.wording import counted, seeds_to_rank
from posenc.lab.records import files
from posenc.lab.report.cells import Arm, Findings, Task, cell, factor, in_order, is_bits, scale, top
from posenc.lab.report.chart import Chart, Series
from posenc.lab.report.pictures import draw, saved
from posenc.support.languages import Words

TABLE, FIGURE = "table.tex", "figure.pdf"
SPECIAL = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "×": r"$\times$",
}
NOT_LEARNT, IMPROVING = r"$^\dagger$", r"$^\ddagger$"


def write_paper(findings: Findings, newcomer: str | None, directory: Path) -> str:
    """Writes table.tex and figure.pdf. Returns the table."""
    table = latex_table(findings, newcomer)
    files.write(directory / TABLE, table)
    files.write(directory / FIGURE, figure(findings, newcomer))
    return table


def latex_table(findings: Findings, newcomer: str | None = None) -> str:
    """A table environment. `newcomer` is the word of the encoding to print in bold."""
    task = main_task(findings)
    arms, longer = in_order(task), top(task) > 1
    arms = [*arms, *(arm for arm in task["arms"] if arm not in arms)]
    head = ["", *(f"{length} ({length / task['length']:.3g}$\\times$)" for length in task["lengths"])]
    rows = [_row(task, arm, arm["name"] == newcomer) for arm in arms]
    lines = [
        r"\begin{table}",
        r"\centering",
        f"\\caption{{{caption(findings, task)}}}",
        f"\\begin{{tabular}}{{l{'r' * (len(task['lengths']) + longer)}}}",
        r"\toprule",
        " & ".join(head + ["kept to"] * longer) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _row(task: Task, arm: Arm, bold: bool) -> list[str]:
    name = escaped(title(arm["name"]).en)
    marks = NOT_LEARNT * (not arm["learnt"]) + IMPROVING * _improving(arm)
    row = [(f"\\textbf{{{name}}}" if bold else name) + marks]
    row += [_entry(task, arm, length) for length in task["lengths"]]
    return row + [escaped(factor(arm["factor"], top(task)))] * (top(task) > 1)


def _entry(task: Task, arm: Arm, length: int) -> str:
    score = cell(task, arm, length)
    if score.number is None:
        return "--"
    digits = 2 if is_bits(task) else 1
    mean = f"{scale(task) * score.number:.{digits}f}"
    if len(score.seeds) < 2:
        return mean
    return f"{mean}\\,$\\pm$\\,{scale(task) * statistics.stdev(score.seeds):.{digits}f}"


def _improving(arm: Arm) -> bool:
    return bool(arm["learnt"] and arm["converged"] is False)


def caption(findings: Findings, task: Task) -> str:
    """What the numbers are, how the models were trained and tuned, and what the marks mean."""
    size, seeds, training = findings["size"], len(findings["seeds"]), task["training"]
    measure = "bits per target, lower is better" if is_bits(task) else "per cent of rows all right, higher is better"
    spread = ", mean $\\pm$ standard deviation over" if seeds > 1 else ","
    tuned = ""
    if len(task["learning_rates"]) > 1:
        tuned = f" Settings chosen per encoding on a separate seed with {len(task['learning_rates'])} tries each."
    marks = ""
    if not all(arm["learnt"] for arm in task["arms"]):
        marks += f" {NOT_LEARNT}~did not learn the trained length."
    if any(map(_improving, task["arms"])):
        marks += f" {IMPROVING}~still improved at the end of training."
    layers, heads = counted(size["n_layers"], "layer", "layers"), counted(size["n_heads"], "head", "heads")
    return (
        f"{escaped(task['title']['en'])}: {measure}{spread} {seeds_to_rank(findings).en}; trained at length "
        f"{task['length']} for {training['steps']} steps of {training['rows']} rows; {layers}, "
        f"$d_{{\\mathrm{{model}}}} = {size['d_model']}$, {heads}.{tuned}{marks}"
    )


def escaped(text: str) -> str:
    """For LaTeX. The sign ">" stands in mathematics."""
    return "".join(SPECIAL.get(letter, letter) for letter in text).replace(">", "$>$")


def figure(findings: Findings, newcomer: str | None = None) -> bytes:
    """PDF: mean score against length, a dot for every seed, the newcomer thick. The same findings give the same bytes.

    Raises ModuleNotFoundError without matplotlib, ValueError if nothing has a score.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    task = main_task(findings)
    series = [Series(title(arm["name"]), arm["name"], scores) for arm in in_order(task) if (scores := _points(task, arm))]
    if not series:
        raise ValueError(f"{findings['name']}: no trial has a score, so there is nothing to draw")
    x = Words(f"length ({task['unit']['en']}); trained at {task['length']}")
    y = Words("bits per target" if is_bits(task) else "rows all right, %")
    sheet = Figure(figsize=(6.3, 3.7), layout="constrained")
    chart = Chart(series, x, y, x, ticks=task["lengths"], trained=task["length"])
    draw(sheet.add_subplot(), chart, [arm["name"] for arm in task["arms"]], "en", newcomer)
    with rc_context({"pdf.fonttype": 42}):
        return saved(sheet, "pdf", {"CreationDate": None, "ModDate": None})


def _points(task: Task, arm: Arm) -> list[tuple[float, float, list[float]]]:
    scores = [(length, cell(task, arm, length)) for length in task["lengths"]]
    return [
        (length, scale(task) * score.number, [scale(task) * seed for seed in score.seeds])
        for length, score in scores
        if score.number is not None
    ]
