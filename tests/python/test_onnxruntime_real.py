"""A real ONNX Runtime whose CUDA provider runs over libraries that do nothing (onnxruntime_runtime.py), served by Strata: on a simulated
device, whose addresses hold nothing, and over the stand-in of the driver whose memory holds bytes, so that what the runtime copies comes
through. STRATA_ONNXRUNTIME_PYTHON names the Pythons that have ONNX Runtime for CUDA, numpy and onnx, with ':' between them; without it this
one is asked."""

import functools
from pathlib import Path

import pytest
from real_package import DEVICES, STAND_INS, make, pythons, run

MIB = 1 << 20
CUDA = "CUDAExecutionProvider"
PYTHONS = pythons("STRATA_ONNXRUNTIME_PYTHON", "onnxruntime", "numpy", "onnx")
WITHOUT = "no ONNX Runtime is installed here (STRATA_ONNXRUNTIME_PYTHON names a Python that has it, numpy and onnx)"
pytestmark = pytest.mark.skipif(not PYTHONS, reason=WITHOUT)


@pytest.fixture(scope="module", params=PYTHONS)
def program(request, tmp_path_factory):
    """program(devices, what): what it tells under this ONNX Runtime, and what it said on standard error."""
    runtime = make(request.param, "onnxruntime_runtime.py", tmp_path_factory.mktemp("runtime"))
    paths = {"LD_PRELOAD": runtime, "LD_LIBRARY_PATH": f"{Path(runtime).parent}:{STAND_INS}", "STRATA_FAKE_CUDART": runtime}

    @functools.lru_cache(maxsize=None)
    def told(devices, what="whole"):
        return run(request.param, "onnxruntime_session.py", devices, what, **paths)

    return told


@pytest.fixture(params=DEVICES)
def told(program, request):
    results, _ = program(request.param)
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


def test_bytes_come_through(program):
    told, _ = program("gpu")
    assert told["run"] == told["bound"] == told["the other"] == told["outputs"] == [True, True]
    assert told["together"] == [160, 160]


def test_a_limit_is_onnx_runtime_s_exception(told):
    for name, kind in (("limited", "Fail: [ONNXRuntimeError]"), ("limited value", "RuntimeError: ")):
        assert told[name].startswith(kind) and "CUDAExternalAllocator::Alloc" in told[name]
    assert told["limited small"] == told["lifted"] == "ok"
    assert told["providers after"] == told["providers"], "ONNX Runtime went on without the provider"
    assert told["after the limit"] == [1, 1]


@pytest.mark.parametrize("devices", DEVICES)
def test_the_reason_is_in_the_log(program, devices):
    _, said = program(devices)
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


def test_values_before_the_first_session_have_an_arena_of_onnx_runtime_s(program):
    """Which has nothing here: this runtime has no memory of its own. It stays theirs when there is a session."""
    told, _ = program("sim:h100", "early")
    assert told["before"].startswith("RuntimeError: ") and "arena" in told["before"]
    assert told["after"].startswith("RuntimeError: ") and "arena" in told["after"]
    assert 0 < told["asked"][0] < told["asked"][1]
    assert told["run"] == "ok"


def test_values_outside_sessions_come_from_the_last_session_before_the_first_of_them(program):
    told, _ = program("sim:h100", "whose")
    assert told["served"] == [MIB, MIB]
