"""A real RMM served by Strata, as far as it goes without a GPU (rmm_runtime.py): on a simulated device, whose addresses hold nothing, and
over the stand-in of the driver, whose memory holds bytes. Its copies by the host go through; its own streams, its pools and buffers that
grow need a driver of NVIDIA's. STRATA_RMM_PYTHON names the Pythons that have RMM and numpy, with ':' between them; without it this one is
asked."""

import functools

import pytest
from real_package import DEVICES, STAND_INS, make, pythons, run

MIB = 1 << 20
PYTHONS = pythons("STRATA_RMM_PYTHON", "rmm", "numpy")
pytestmark = pytest.mark.skipif(not PYTHONS, reason="no RMM is installed here (STRATA_RMM_PYTHON names a Python that has it and numpy)")


@pytest.fixture(scope="module", params=PYTHONS)
def program(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runtime")
    runtime = make(request.param, "rmm_runtime.py", folder)
    libraries = {"LD_LIBRARY_PATH": STAND_INS, "LD_PRELOAD": str(folder / "rmm_device.so"), "STRATA_FAKE_CUDART": runtime}

    @functools.lru_cache(maxsize=None)
    def told(devices):
        return run(request.param, "rmm_buffers.py", devices, **libraries)

    return told


@pytest.fixture(params=DEVICES)
def told(program, request):
    return program(request.param)[0]


def test_buffers_are_strata_s_blocks(told):
    assert told["installed"] and told["led"] > 100
    assert told["served"] == [MIB, 1, 1] and told["by hand"] == MIB
    assert told["freed"] == 0 and told["served again"]
    assert told["nothing"] == [0, 0]
    assert told["mallocs"] == 0, "the runtime was asked for memory past the door"


def test_they_are_of_the_stream_that_rmm_names(told):
    assert told["streams"] == [1, 1, 0]
    assert told["after the streams"] == 0


def test_a_buffer_is_not_reused_before_the_stream_that_it_was_freed_on(program):
    told, _ = program("sim:h100")
    assert told["deferred"] >= MIB


def test_bytes_come_through(program):
    told, _ = program("gpu")
    assert told["bytes"]


def test_a_limit_is_rmm_s_exception_with_the_report(told):
    assert told["limited"].startswith("std::bad_alloc: out_of_memory: out of memory in gpu:0") and "try:" in told["limited"]
    assert told["limited small"] == told["lifted"] == "ok"
    assert told["kept"] == MIB


def test_rmm_s_adaptors_go_above_it(told):
    assert told["counted"] == [MIB, MIB] and told["counted after"] == 0
    assert told["RMM's limit"].startswith("MemoryError: ") and "Exceeded memory limit" in told["RMM's limit"]


def test_threads(told):
    assert told["after the threads"] == 0


def test_everything_goes_back(told):
    assert told["live"] == 0


def test_a_buffer_may_outlive_the_facade(told):
    """It goes where the facade has given its memory back."""
    assert told["leaks"] == 1
    assert "closed" in told["late"]
