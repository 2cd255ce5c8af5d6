"""Judges every published claim by the records, and writes the tables of README.md and README.zh-CN.md beside this file.

    python results/claims/claims.py

It reads the records of results/claims/*, results/study, and for times results/study-code; nothing is trained.
"""

from judging.readme import CLAIMS_FOLDER, FOLDERS, judgements, pages
from posenc.lab.findings.assemble import findings


def main() -> None:
    found = {folder: findings(CLAIMS_FOLDER / folder) for folder in FOLDERS}
    for path, text in pages(judgements(found)).items():
        path.write_text(text, "utf-8")
        print(path.relative_to(CLAIMS_FOLDER.parents[1]))


if __name__ == "__main__":
    main()
