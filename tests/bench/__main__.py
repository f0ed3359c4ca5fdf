"""Runs scale.py with the paths of the tests."""

import importlib

from tests import conftest

assert conftest.ROOT
importlib.import_module("tests.bench.scale").main()
