"""The programs of README.md and doors/python/README.md: the first is the same in both, and each runs."""

import os
import re
from pathlib import Path

import pytest

import strata

SOURCE = Path(os.environ["STRATA_SOURCE"])


def programs(path):
    return re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.S | re.M)


def test_the_program_runs(capsys):
    program = programs(SOURCE / "README.md")[0]
    assert program == programs(SOURCE / "doors" / "python" / "README.md")[0]
    assert len(program.splitlines()) <= 12
    exec(compile(program, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.startswith("gpu:0\n")
    assert "waiting for other streams" in printed


@pytest.mark.parametrize("number", range(1, len(programs(SOURCE / "doors" / "python" / "README.md"))))
def test_each_further_program_runs(number):
    exec(compile(programs(SOURCE / "doors" / "python" / "README.md")[number], "doors/python/README.md", "exec"), {})


def test_every_method_is_in_its_group():
    """The table of doors/python/README.md has each public method of a facade and its objects, and nothing else."""
    page = (SOURCE / "doors" / "python" / "README.md").read_text()
    table = page[page.index("| group | |") : page.index("A graph has its own pool")]
    named = {name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)\(\)`", table)}
    kinds = [strata.Facade, strata.Block, strata.Stream, strata.Allocator]
    there = {name for kind in kinds for name in vars(kind) if not name.startswith("_")}
    there |= {name for kind in strata.Facade.__mro__ for name in vars(kind) if not name.startswith("_")}
    there |= set(strata.planning.__all__) | set(strata.__all__)
    assert named <= there
    facade = {name for kind in strata.Facade.__mro__ for name, value in vars(kind).items() if callable(value) and not name.startswith("_")}
    assert facade - named == {"close", "change_strategy"}
