"""Checks the type hints with mypy --strict: it accepts correct programs and finds wrong ones. Skipped without mypy."""

import os
import re
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

RIGHT = """
import pathlib
from typing import List

import strata
from strata.planning import Buffer, Plan, make

def run(strategy: pathlib.Path) -> int:
    with strata.open(strategy, devices="sim:h100", set=["limit.bytes=1GiB"]) as s:
        stream: strata.Stream = s.stream(name="copy")
        with s.begin_graph_pool(stream) as pool, s.capture(stream) as graph:
            block: strata.Block = s.allocate(1 << 20, place=strata.pinned(), stream=stream, tag="x")
        graph.launch(stream)
        restored = pool.checkpoint().restore()
        victims: List[strata.Block] = s.best_victims(1 << 20) + restored.live
        base, size = block.base()
        try:
            s.close("busy")
        except strata.BusyError as error:
            tags: List[str] = [leak.tag for leak in error.leaks]
        except FileNotFoundError as missing:
            print(missing.filename, strata.__version__)
        return base + size + s.statistics().peak_reserved_bytes + len(victims)

plan: Plan = make([Buffer(0, 1, 64), (1, 2, 64)], planner="exact", seconds=0.5)
peaks: List[int] = [int(run["peak_reserved_bytes"]) for run in strata.compare(["strata"], [pathlib.Path("a.csv")])]
"""
WRONG = """
import strata
s = strata.open("strata", sets=["a=b"])
s.allocate("1MiB")
s.allocate(1.5)
s.close(1)
strata.opne("strata")
strata.compare(["strata"], [5])
s.allocate(1).fre()
x: str = s.allocate(1).ptr
s.on_free_memory(lambda: 0)
"""


def test_mypy_finds_what_is_wrong_and_nothing_else(tmp_path):
    if not util.find_spec("mypy"):
        pytest.skip("mypy is not installed")
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    environment = {**os.environ, "MYPYPATH": str(Path(os.environ["STRATA_SOURCE"]) / "doors" / "python"), "PYTHONPATH": ""}
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file=", "right.py", "wrong.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=250)
    found = re.findall(r"^(\S+):(\d+): error", done.stdout, re.M)
    lines = [number for number, text in enumerate(WRONG.splitlines(), 1) if number > 2 and text]
    assert sorted(set(found), key=lambda row: int(row[1])) == [("wrong.py", str(number)) for number in lines], done.stdout + done.stderr
