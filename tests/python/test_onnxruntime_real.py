"""A real ONNX Runtime whose CUDA provider runs over libraries that do nothing (onnxruntime_runtime.py), served by Strata: on a simulated
device, whose addresses hold nothing, and over the stand-in of the driver whose memory holds bytes, so that what the runtime copies comes
through. STRATA_ONNXRUNTIME_PYTHON names the Pythons that have ONNX Runtime for CUDA, numpy and onnx, with ':' between them; without it this
one is asked."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCE = Path(os.environ["STRATA_SOURCE"])
STAND_INS = os.environ["STRATA_STAND_INS"]
MIB = 1 << 20
CUDA = "CUDAExecutionProvider"
CONTENTS = {"FAKE_CUDART_CONTENTS": "1", "STAND_IN_CONTENTS": "1", "STAND_IN_NO_VIRTUAL": "1"}


def has_onnxruntime(python):
    found = "import sys; from importlib.util import find_spec as f; sys.exit(not all(map(f, ('onnxruntime', 'numpy', 'onnx'))))"
    return subprocess.run([python, "-c", found]).returncode == 0


NAMED = os.environ.get("STRATA_ONNXRUNTIME_PYTHON", sys.executable).split(":")
PYTHONS = [python for python in NAMED if has_onnxruntime(python)]
WITHOUT = "no ONNX Runtime is installed here (STRATA_ONNXRUNTIME_PYTHON names a Python that has it, numpy and onnx)"
pytestmark = pytest.mark.skipif(not PYTHONS, reason=WITHOUT)


@pytest.fixture(scope="module", params=PYTHONS)
def run(request, tmp_path_factory):
    """run(devices, what): what the program tells under this ONNX Runtime, and what it said on standard error."""
    folder = tmp_path_factory.mktemp("runtime")
    made = subprocess.run([request.param, str(HERE / "onnxruntime_runtime.py"), str(folder)], stdout=subprocess.PIPE, text=True)
    if made.returncode == 77:
        pytest.skip(made.stdout)
    runtime = made.stdout.strip()
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime,
        "LD_LIBRARY_PATH": f"{folder}:{STAND_INS}",
        "STRATA_FAKE_CUDART": runtime,
        "PYTHONPATH": f"{SOURCE / 'python'}:{HERE / 'programs'}",
    }

    @functools.lru_cache(maxsize=None)
    def program(devices, what="whole"):
        command = [request.param, str(HERE / "programs" / "onnxruntime_session.py"), devices, what]
        more = CONTENTS if devices == "gpu" else {}
        done = subprocess.run(command, capture_output=True, text=True, timeout=250, env={**environment, **more})
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(next(line[8:] for line in done.stdout.splitlines() if line.startswith("RESULTS "))), done.stderr

    return program


@pytest.fixture(params=["sim:h100", "gpu"])
def told(run, request):
    results, _ = run(request.param)
    return results


def test_the_provider_is_made_and_runs_on_the_default_stream(told):
    assert told["providers"] == [CUDA, "CPUExecutionProvider"]
    assert told["kernels"] > 0
    assert told["aside"] == 0, "work went to another stream than the one that memory is served for"


def test_its_memory_is_strata_s(told):
    """The weights, the input and three outputs: all served for the default stream."""
    assert told["created"] == told["between runs"] == told["after the binding"] == [1, 1]
    assert (told["places"], told["owned"]) == (["cuda"] * 4, [MIB] * 4)
    assert told["while bound"] == [5, 5]
    assert told["mallocs"] == 0, "ONNX Runtime asked the runtime for memory past the door"


def test_bytes_come_through(run):
    told, _ = run("gpu")
    assert told["run"] == told["bound"] == told["the other"] == told["outputs"] == [True, True]
    assert told["together"] == [160, 160]


def test_a_limit_is_onnx_runtime_s_exception(told):
    for name, kind in (("limited", "Fail: [ONNXRuntimeError]"), ("limited value", "RuntimeError: ")):
        assert told[name].startswith(kind) and "CUDAExternalAllocator::Alloc" in told[name]
    assert told["limited small"] == told["lifted"] == "ok"
    assert told["providers after"] == told["providers"], "ONNX Runtime went on without the provider"
    assert told["after the limit"] == [1, 1]


@pytest.mark.parametrize("devices", ["sim:h100", "gpu"])
def test_the_reason_is_in_the_log(run, devices):
    _, said = run(devices)
    assert "out of memory in gpu:0" in said and "place_limit" in said


def test_two_sessions_share_a_facade(told):
    assert told["two"] == told["after both"] == [2, 2]
    assert told["together"][0] == 160
    assert told["one gone"] == [1, 1]


def test_everything_goes_back(told):
    """Also where outputs were held longer than their session: they keep what they were bound with."""
    assert told["outputs alone"][0] >= 3
    assert told["gone"] == [0, 0]
    assert told["leaks"] == 0


def test_onnx_runtime_refuses_a_stream_beside_an_external_allocator(told):
    """So the door names none. Should this fail, it can."""
    assert told["a stream beside it"] == ["CPUExecutionProvider"]


def test_values_before_the_first_session_have_an_arena_of_onnx_runtime_s(run):
    """Which has nothing here: this runtime has no memory of its own. It stays theirs when there is a session."""
    told, _ = run("sim:h100", "early")
    assert told["before"].startswith("RuntimeError: ") and "arena" in told["before"]
    assert told["after"].startswith("RuntimeError: ") and "arena" in told["after"]
    assert 0 < told["asked"][0] < told["asked"][1]
    assert told["run"] == "ok"


def test_values_outside_sessions_come_from_the_last_session_before_the_first_of_them(run):
    told, _ = run("sim:h100", "whose")
    assert told["served"] == [MIB, MIB]
