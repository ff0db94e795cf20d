"""The command of the wheel, lists, and what the package says where nothing can be loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import strata
from strata import command

SOURCE = Path(os.environ["STRATA_SOURCE"])
TRACE = SOURCE / "traces" / "tinytorch-mnist.csv"


def python(*arguments, **environment):
    """Another Python with the package; what it printed and answered."""
    whole = {**os.environ, "PYTHONPATH": str(SOURCE / "python"), **environment}
    return subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=whole)


def test_compare_answers_the_runs():
    runs = strata.compare(["paddle", "strata"], [TRACE], device="sim:h100", set=["auto_growth.chunk_size=20MiB"])
    assert [run["label"] for run in runs] == ["paddle", "strata"]
    assert runs[0]["options"] == {"auto_growth.chunk_size": "20MiB"}
    assert runs[1]["peak_reserved_bytes"] < runs[0]["peak_reserved_bytes"]
    assert runs[0]["operations"] == 97326


def test_explain_tells_where_values_come_from():
    assert "chunk_size               32MiB" in strata.explain("paddle", set=["auto_growth.chunk_size=32MiB"])
    assert len(strata.explain("paddle", short=True)) < len(strata.explain("paddle"))


def test_what_the_command_says_is_the_error():
    with pytest.raises(strata.StrategyError, match="no-such"):
        strata.explain("no-such")
    with pytest.raises(strata.StrategyError, match="nowhere.csv"):
        strata.compare(["strata"], ["nowhere.csv"], device="sim:h100")
    with pytest.raises(strata.StrataError, match="hazard"):
        strata.compare(["paddle"], [SOURCE / "traces" / "streams-prefetch.csv.gz"], device="sim:h100", check=True, set=["stream_safe.event=use"])


def test_lists():
    assert "strata" in strata.presets() and "pytorch" in strata.presets()
    assert "auto_growth" in strata.layers()
    assert strata.version().count(".") == 2


def test_the_entry_point_is_the_command():
    done = python("-c", "import sys; sys.argv = ['', 'version']; from strata.command import main; main()")
    assert (done.returncode, done.stdout.strip()) == (0, strata.version())
    done = python("-c", "from strata.command import main; main()", STRATA_COMMAND="/nowhere/strata")
    assert done.returncode == 1 and "/nowhere/strata" in done.stderr
    assert command.command_path() == os.environ["STRATA_COMMAND"]


def test_no_library_is_told_by_name():
    done = python("-c", "import strata; strata.version()", STRATA_LIBRARY="/nowhere/libstrata.so")
    assert done.returncode == 1
    assert "ImportError: no libstrata can be loaded" in done.stderr and "/nowhere/libstrata.so" in done.stderr


def test_the_library_that_is_named_is_loaded():
    assert strata.library_path() == os.environ["STRATA_LIBRARY"]
