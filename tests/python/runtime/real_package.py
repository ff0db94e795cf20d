"""What the tests under a real ONNX Runtime, CuPy, RMM or Numba share: finding its Pythons, and running a program there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent
STAND_INS = os.environ["STRATA_STAND_INS"]
CONTENTS = {"FAKE_CUDART_CONTENTS": "1", "STAND_IN_CONTENTS": "1"}  # memory of the device holds bytes
DEVICES = ["sim:h100", "gpu"]


def pythons(variable, *modules):
    """The Pythons that a variable of the environment names, with ':' between them, or this one: those that have all modules."""
    found = f"import sys; from importlib.util import find_spec as f; sys.exit(not all(map(f, {modules!r})))"
    named = os.environ.get(variable, sys.executable).split(":")
    return [python for python in named if subprocess.run([python, "-c", found], stderr=subprocess.DEVNULL).returncode == 0]


def make(python, script, folder):
    """What the script of this folder prints that makes the libraries."""
    made = subprocess.run([python, str(HERE / "runtime" / script), str(folder)], stdout=subprocess.PIPE, text=True)
    if made.returncode == 77:
        pytest.skip(made.stdout)
    assert made.returncode == 0
    return made.stdout.strip()


def run(python, program, devices, *more, **environment):
    """What a program of programs/ tells, and what it said on standard error."""
    inherited = {name: value for name, value in os.environ.items() if name not in CONTENTS}
    told = {
        **inherited,
        **(CONTENTS if devices == "gpu" else {}),
        "STAND_IN_NO_VIRTUAL": "1",
        "PYTHONPATH": f"{Path(os.environ['STRATA_SOURCE']) / 'doors' / 'python'}:{HERE / 'programs'}",
        **environment,
    }
    command = [python, str(HERE / "programs" / program), devices, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, env=told)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(next(line[8:] for line in done.stdout.splitlines() if line.startswith("RESULTS "))), done.stderr
