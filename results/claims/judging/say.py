"""What the study says: English where it is said, Chinese in zh.po beside this file."""

from pathlib import Path

from posenc.support.languages import catalogue_of

say = catalogue_of(str(Path(__file__).parent))
