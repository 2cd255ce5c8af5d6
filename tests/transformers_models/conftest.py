"""What tests of saved folders share."""

import importlib

import pytest


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """transformers keeps the code of folders here."""
    for module in ("transformers.dynamic_module_utils", "transformers.utils"):
        if hasattr(importlib.import_module(module), "HF_MODULES_CACHE"):
            monkeypatch.setattr(f"{module}.HF_MODULES_CACHE", str(tmp_path / "modules"))
