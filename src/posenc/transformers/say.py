"""What commands on a loaded model say: English where it is said, Chinese in zh.po beside this file."""

from posenc.support.languages import catalogue_of

say = catalogue_of("transformers")
