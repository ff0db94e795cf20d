"""Faults of a program that allocates through the pluggable door, planted and found: by the layer `guard` over a stand-in of the driver,
and by a replay of what was recorded under the happens-before checker. No PyTorch is needed."""

import ctypes as c
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_torch_pluggable import Calls

import strata
from strata.torch._pluggable import Pluggable

MIB = 1 << 20
PROGRAM = Path(__file__).parent / "programs" / "torch_faults.py"
RECORDED = "version: 1\nstrategy: recorded\nstack: [{trace: {path: %s}}, stream_safe, {auto_growth: {chunk_size: 2MiB}}, system]\n"
EARLY = "version: 1\nstrategy: early\nstack: [{stream_safe: {event: use}}, {auto_growth: {chunk_size: 2MiB}}, system]\n"

pytestmark = pytest.mark.skipif(
    not (Path(os.environ["STRATA_DOORS"]) / "libstrata_torch.so").exists(), reason="the doors into PyTorch were not built"
)


def run(fault):
    """-> what was said, the fault's address, what --check finds."""
    environment = dict(os.environ, LD_LIBRARY_PATH=os.environ["STRATA_STAND_INS"], STAND_IN_CONTENTS="1")
    done = subprocess.run([sys.executable, PROGRAM, fault], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    return told["said"], told["address"], told["status"], done.stderr


@pytest.mark.parametrize("fault, offset", [("after", 1000), ("last", 1255), ("before", -1)])
def test_a_write_beside_a_tensor_is_found_at_its_free(fault, offset):
    said, address, status, told = run(fault)
    assert len(said) == 1 and all(what in said[0] for what in ("layers.3.attention", address, str(offset)))
    assert status == 1 and "layers.3.attention" in told


@pytest.mark.parametrize("fault, offset", [("reused", 4321), ("large", 3 * MIB + 17)])
def test_a_tensor_that_is_used_after_its_free_is_found(fault, offset):
    said, address, status, _ = run(fault)
    assert len(said) == 1 and all(what in said[0] for what in ("layers.3.mlp", address, str(offset)))
    assert status == 1


def test_a_tensor_without_a_name_is_told_by_its_address():
    said, address, status, _ = run("nameless")
    assert len(said) == 1 and address in said[0] and status == 1


def test_nothing_is_found_in_a_sound_program():
    said, _, status, told = run("sound")
    assert said == [] and status == 0 and "no fault" in told


def test_what_was_recorded_shows_a_strategy_that_reuses_too_early(tmp_path):
    """A program through the door lends tensors to a copy stream. A strategy whose event is taken at the borrow serves them again while
    the copy may go on: the checker says so, and finds nothing under the default."""
    path, early = tmp_path / "program.csv", tmp_path / "early.yaml"
    early.write_text(EARLY)
    s = strata.open(text=RECORDED % path, devices="sim:h100", ignore_environment=True)
    calls, copy = Calls(Pluggable(s)), s.stream()
    for _ in range(8):
        pointer = calls.allocate(MIB)
        calls("record", c.c_void_p(pointer), c.c_void_p(copy.handle))
        calls.free(pointer)
    copy.destroy()
    s.close("force")
    strata.compare(["strata"], [path], device="sim:h100", check=True)
    with pytest.raises(strata.StrataError):
        strata.compare([early], [path], device="sim:h100", check=True)
