"""A real PyTorch on a real GPU, under its own allocator and under both doors: equal losses, bit for bit. Skipped where there is no GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCE = Path(os.environ["STRATA_SOURCE"])
ASKED = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)"


def has_gpu(python):
    return subprocess.run([python, "-c", ASKED], stderr=subprocess.DEVNULL).returncode == 0


PYTHONS = [python for python in os.environ.get("STRATA_TORCH_PYTHON", sys.executable).split(":") if has_gpu(python)]
needs_gpu = pytest.mark.skipif(not PYTHONS, reason="no PyTorch with a GPU is here (STRATA_TORCH_PYTHON names a Python that has one)")


def train(python, mode, cache):
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE / 'doors' / 'python'}:{HERE / 'programs'}", "STRATA_DOORS_SOURCE": str(SOURCE)}
    environment["XDG_CACHE_HOME"] = os.environ.get("STRATA_TEST_CACHE", str(cache))
    program = str(HERE / "programs" / "torch_train.py")
    done = subprocess.run([python, program, mode], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULTS ")]
    assert lines, done.stderr
    return json.loads(lines[0][8:])


@pytest.fixture(scope="module", params=PYTHONS)
def native(request, tmp_path_factory):
    return request.param, train(request.param, "native", tmp_path_factory.mktemp("native"))


@needs_gpu
@pytest.mark.parametrize("door", ["pluggable", "whole"])
def test_a_training_has_pytorch_s_own_losses(native, door, tmp_path):
    python, own = native
    told = train(python, door, tmp_path)
    assert told["losses"] == own["losses"]
    assert told["graphs"] == own["graphs"]
    assert told["graphs"][1], "a graph wrote over what is live"
    assert told["served"] > 100
    assert told["peaks"][0] <= told["peaks"][1]
    assert told["out of memory"][1] == 4.0
    if door == "whole":
        assert told["out of memory"][0] == "OutOfMemoryError"
        assert told["convolution"] == own["convolution"]
        assert told["compiled"] == own["compiled"] == 8
