"""Examples in docstrings of the public API run, and every public name says what it takes."""

import doctest
import importlib
import inspect

import pytest

import pysim

MODULES = sorted({f"pysim.{module}" for module in pysim._LAZY.values()} | {"pysim"})


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert not found.failed


def test_what_users_call_first_has_an_example():
    for made in (pysim.simulate, pysim.Kernel, pysim.Pattern, pysim.Code, pysim.device):
        assert ">>>" in inspect.getdoc(made), made


@pytest.mark.parametrize("name", [name for name in pysim.__all__ if name not in ("__version__", "SCHEMES")])
def test_public_names_are_documented(name):
    made = getattr(pysim, name)
    doc = inspect.getdoc(made)
    assert doc
    assert not doc.startswith(f"{name}("), "a dataclass without a docstring"


def test_dir_lists_the_api():
    assert dir(pysim) == sorted(pysim.__all__)
    assert all(hasattr(pysim, name) for name in pysim.__all__)
