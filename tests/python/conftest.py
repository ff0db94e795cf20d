"""What the tests share. ctest names the library, the command and the tree by the environment (CMakeLists.txt)."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(os.environ["STRATA_SOURCE"]) / "doors" / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "runtime"))

import strata  # noqa: E402


@pytest.fixture
def s():
    """A facade over a simulated H100 of the default strategy. What a test leaves live is a failure."""
    facade = strata.open("strata", devices="sim:h100", ignore_environment=True)
    yield facade
    facade.close()
