"""Virtual environments: built once, complete or absent."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests_wheels import wheel

MAIN = "import alpha, sys\nprint(alpha.double(21), sys.prefix)\n"
