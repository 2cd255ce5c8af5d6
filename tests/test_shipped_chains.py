"""The study of far context that is shipped: complete, and its page's table is what its findings say."""

from pathlib import Path

import pytest
from scipy.stats import t as student

from posenc.lab.findings.assemble import findings
from posenc.lab.findings.titles import change_title, title
from posenc.lab.records.results import Folder

ROOT = Path(__file__).parent.parent
CHAINS = ROOT / "results" / "chains"
PAGES = {CHAINS / "README.md": "en", CHAINS / "README.zh-CN.md": "zh"}


@pytest.fixture(scope="module")
def task():
    (only,) = findings(CHAINS)["tasks"]
    return only


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_shows_the_stored_numbers(page: Path, task) -> None:
    language = PAGES[page]
    arms = {title(arm["name"]).in_language(language): arm for arm in task["arms"]}
    rope = arms["RoPE"]
    cells = {name: arm["cells"] for name, arm in arms.items()}
    for one in task["after"]:
        changed = f"RoPE + {change_title(one['change']).in_language(language)}"
        cells[changed] = one["cells"] | {"64": rope["cells"]["64"]}
    first, *table = [
        line.strip("| ").split(" | ") for line in page.read_text("utf-8").splitlines() if line.startswith("| ")
    ][1:]
    best = task["floor"]["lengths"]
    assert first[1:] == [f"{best['64']:.2f}", f"{best['1024']:.2f}", "–", "100 %"]
    shown = [row[0].removesuffix(" ↓") for row in table]
    learnt = {name for name, arm in arms.items() if arm["learnt"]}
    assert set(shown) == learnt | {name for name in cells if name.endswith(("YaRN", "Self-Extend"))}
    for name, *numbers in table:
        plain = name.removesuffix(" ↓")
        home, far = cells[plain]["64"]["mean"], cells[plain]["1024"]["mean"]
        seeds = list(cells[plain]["1024"]["seeds"].values())
        if far is None:
            assert numbers == [f"{home:.2f}", "–", "–", "–"]
            continue
        mean = sum(seeds) / len(seeds)
        half = student.ppf(0.975, 4) * (sum((x - mean) ** 2 for x in seeds) / 4 / 5) ** 0.5
        used = 100 * (home - far) / (best["64"] - best["1024"])
        assert numbers == [f"{home:.2f}", f"{far:.2f}", f"{mean - half:.2f} – {mean + half:.2f}", f"{used:.0f} %"], name
        assert len(seeds) == 5
        assert name.endswith("↓") == (arms.get(plain, {}).get("converged") is False)


def test_all_trials_are_there() -> None:
    manifest = Folder(CHAINS).experiment()
    assert manifest is not None
    assert set(manifest["keys"]) <= set(Folder(CHAINS).keys())
    assert not manifest["failures"]
    content = b"".join(path.read_bytes() for path in CHAINS.rglob("*") if path.is_file())
    assert not any(place in content for place in (b"/tmp/", b"/home/", b"/root/", b"/work/"))
