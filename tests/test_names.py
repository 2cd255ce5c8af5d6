"""The names that posenc exports stay what they are whatever is imported, in whatever order."""

import pkgutil
import subprocess
import sys

import pytest

import posenc


def test_no_module_bears_the_name_of_an_exported_function():
    modules = {module.name for module in pkgutil.iter_modules(posenc.__path__)}
    assert not modules & set(posenc._WHERE)


@pytest.mark.acceptance
def test_names_survive_the_import_of_every_module():
    code = (
        "import importlib, pkgutil, posenc\n"
        "for m in pkgutil.walk_packages(posenc.__path__, 'posenc.'):\n"
        "    m.name.endswith(('__main__', 'triton_kernel', 'kernels.kernels')) or importlib.import_module(m.name)\n"
        "assert all(callable(getattr(posenc, n)) for n in posenc._WHERE if n != 'BiasFn'), 'a module took a name'\n"
        "assert posenc.attend.__name__ == 'attend'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_dir_lists_what_can_be_asked_for():
    for name in dir(posenc):
        getattr(posenc, name)
