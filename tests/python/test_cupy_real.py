"""A real CuPy served by Strata, over a runtime that does nothing (cupy_runtime.py): on a simulated device, whose addresses hold nothing,
and over the stand-in of the driver, whose memory holds bytes. No kernel is compiled. STRATA_CUPY_PYTHON names the Pythons that have CuPy
and numpy, with ':' between them; without it this one is asked."""

import functools

import pytest
from real_package import DEVICES, STAND_INS, make, pythons, run

MIB = 1 << 20
PYTHONS = pythons("STRATA_CUPY_PYTHON", "cupy", "numpy")
pytestmark = pytest.mark.skipif(not PYTHONS, reason="no CuPy is installed here (STRATA_CUPY_PYTHON names a Python that has it and numpy)")


@pytest.fixture(scope="module", params=PYTHONS)
def program(request, tmp_path_factory):
    runtime = make(request.param, "cupy_runtime.py", tmp_path_factory.mktemp("runtime"))

    @functools.lru_cache(maxsize=None)
    def told(devices):
        return run(request.param, "cupy_arrays.py", devices, LD_LIBRARY_PATH=STAND_INS, STRATA_FAKE_CUDART=runtime)

    return told


@pytest.fixture(params=DEVICES)
def told(program, request):
    results, said = program(request.param)
    assert not said
    return results


def test_arrays_are_strata_s_blocks(told):
    assert told["installed"] and told["led"] > 100
    assert told["served"] == [MIB, 1, 1] and told["a view"]
    assert told["freed"] == 0 and told["served again"]
    assert told["nothing"] == 0
    assert told["mallocs"] == 0, "CuPy asked the runtime for memory past the door"


def test_they_are_of_the_thread_s_current_stream(told):
    assert told["streams"] == [1, 1, 1, 1] and told["differ"] == 3
    assert told["after the streams"] == 0


def test_bytes_come_through(program):
    told, _ = program("gpu")
    assert told["bytes"] and told["zeros"] and told["bytes again"]


def test_a_limit_is_cupy_s_exception_with_the_report(told):
    name, is_strata_s, text = told["limited"]
    assert (name, is_strata_s) == ("OutOfMemoryError", True)
    assert text.startswith("out of memory in gpu:0") and "try:" in text
    assert told["limited small"] == told["lifted"] == "ok"
    assert told["kept"] == MIB


def test_cupy_s_pool_above_strata_gives_back_what_it_keeps(told):
    assert told["the pool keeps"] == [61, 2]
    assert (told["in the pool"], told["the pool had"]) == ("ok", 81)
    assert told["too much"].startswith("OutOfMemoryError: Out of memory allocating")
    assert told["the pool's"] and told["after the pool"] == 0


def test_pinned_memory_stays_cupy_s(told):
    assert told["pinned"] == [True, True, 0]


def test_everything_goes_back(told):
    assert told["live"] == told["leaks"] == 0


def test_without_the_door_cupy_asks_the_runtime(told):
    """So the count above means something."""
    failed, count = told["without the door"]
    assert "CUDARuntimeError" in failed or "OutOfMemoryError" in failed
    assert count > 0
