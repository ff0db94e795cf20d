"""Runs the Python examples of docs/guide.md with a stand-in for PyTorch and without a GPU (pages.py). tests/tools/pages/guide.c runs the page's
other commands."""

import os
import re
import shlex
from pathlib import Path

import pages

from strata.torch.__main__ import parser

PAGE = (Path(os.environ["STRATA_SOURCE"]) / "docs" / "guide.md").read_text()


def test_the_commands_have_these_options():
    commands = re.findall(r"^    python -m strata\.torch (.*)$", PAGE, re.M)
    assert len(commands) == 2
    for command in commands:
        told = parser().parse_args(shlex.split(command))
        assert (told.whole, told.strategy, told.script) == (True, "tuned.yaml", "train.py")
        assert f"```yaml {told.strategy}\n" in PAGE
    assert "--report" not in parser().parse_args(shlex.split(commands[0])).arguments


def test_each_other_option_that_it_names_is_one():
    for option in ["--report", "--check", "--devices", "--set"]:
        assert option in PAGE and option in parser().format_help()


def test_the_programs_run(tmp_path, monkeypatch):
    """The programs of the page, with the two commands that make their files and the two that train."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{os.environ['STRATA_SOURCE']}/doors/python")
    assert pages.run(Path(os.environ["STRATA_SOURCE"]) / "docs" / "guide.md", ["import", "export"]) == 6
    assert (tmp_path / "mine.pickle").exists()
