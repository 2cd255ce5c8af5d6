"""Old names work for one release, warn at the caller's line and lead to the very same objects."""

import importlib
import subprocess
import sys
import warnings

import pytest
import torch

from posenc import Positions, _deprecated


def without(name: str) -> None:
    for loaded in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
        del sys.modules[loaded]


@pytest.mark.parametrize(("old", "new"), _deprecated.MODULES.items())
def test_a_renamed_module_is_found_by_its_old_name_with_a_warning(old: str, new: str) -> None:
    without(old)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}; the old name works until posenc 0.3"):
        found = importlib.import_module(old)
    assert found is importlib.import_module(new)
    assert found.__spec__ is not None
    assert found.__spec__.name == found.__name__ == new
    assert importlib.import_module(old) is found  # once more, and silently


@pytest.mark.parametrize(("module", "name"), _deprecated.NAMES)
def test_a_renamed_name_is_found_by_its_old_name_with_a_warning(module: str, name: str) -> None:
    new = _deprecated.NAMES[module, name]
    with pytest.warns(DeprecationWarning, match=f"{module}.{name} is now {module}.{new}"):
        found = getattr(importlib.import_module(module), name)
    assert found is getattr(importlib.import_module(module), new)


def test_the_warning_points_at_the_line_that_imports() -> None:
    code = "import warnings\nwarnings.simplefilter('always')\nimport posenc\n\nfrom posenc.module import Attention\n"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    assert said.startswith("<string>:5: DeprecationWarning: posenc.module is now posenc.attention_module"), said


def test_the_two_flags_of_positions_became_one_field() -> None:
    for made, row, document in (
        (Positions.arange(1, 3), True, False),
        (Positions.packed([0, 1, 3]), False, True),
        (Positions.at(torch.tensor([[0, 1, 2]])), False, False),
    ):
        with pytest.warns(
            DeprecationWarning, match=r"Positions.consecutive is now Positions.consecutive_in == \"row\""
        ) as said:
            assert made.consecutive is row
        with pytest.warns(DeprecationWarning, match=r"Positions.counted is now Positions.consecutive_in == \"document\""):
            assert made.counted is document
        assert said[0].filename == __file__


def test_what_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("posenc.modules")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.import_module("posenc.attention_module")
