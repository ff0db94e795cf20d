"""A real Numba whose memory manager is Strata, over a driver that does nothing but copy (numba_runtime.py): on a simulated device, whose
addresses hold nothing, and over the stand-in of the driver, whose memory holds bytes. No kernel is compiled. STRATA_NUMBA_PYTHON names the
Pythons that have Numba, with numba-cuda or without, and numpy, with ':' between them; without it this one is asked."""

import functools

import pytest
from real_package import make, pythons, run

MIB = 1 << 20
MODES = {
    "itself": {},
    "Numba": {"NUMBA_CUDA_MEMORY_MANAGER": "strata.numba", "STRATA_STRATEGY": "strata"},
    "threads": {"NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM": "1"},
}
PYTHONS = pythons("STRATA_NUMBA_PYTHON", "numba", "numpy")
pytestmark = pytest.mark.skipif(not PYTHONS, reason="no Numba is installed here (STRATA_NUMBA_PYTHON names a Python that has it and numpy)")


@pytest.fixture(scope="module", params=PYTHONS)
def program(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runtime")
    libraries = {"LD_LIBRARY_PATH": str(folder), "NUMBA_CUDA_DRIVER": make(request.param, "numba_runtime.py", folder)}

    @functools.lru_cache(maxsize=None)
    def told(devices, mode="itself"):
        return run(request.param, "numba_arrays.py", devices, mode, **libraries, **MODES[mode])

    return told


@pytest.fixture(params=[("sim:h100", "itself"), ("sim:h100", "threads"), *(("gpu", mode) for mode in MODES)], ids=" by ".join)
def told(program, request):
    results, said = program(*request.param)
    assert not said
    return results


def test_arrays_are_strata_s_blocks(told):
    assert told.get("installed", True)
    assert told["served"] == [MIB, 1, 1]
    assert told["a view"] and told["with the view"] == 1
    assert told["freed"] == 0 and told["served again"]
    assert told["nothing"] == [0, 1]


def test_the_driver_is_not_asked_past_the_door(program):
    """All memory of the device is Strata's; where Strata simulates one, the driver is not asked at all."""
    for mode in MODES:
        used, reserved = program("gpu", mode)[0]["mine"]
        assert used == reserved > 0
    told = program("sim:h100")[0]
    assert (told["mine"][0], told["asked"]) == (0, 0)


def test_bytes_come_through(program):
    for mode in MODES:
        told, _ = program("gpu", mode)
        assert told["bytes"] == [True] * 3 and told["bytes on a stream"]


def test_streams_are_told(told):
    assert told["on a stream"] == [1, 1]
    assert told["after the stream"] == 0


def test_memory_of_the_host_stays_numba_s(told):
    assert told["of the host"] == 0
    assert told["asked for it"] == [2, 2, 1, 1, 1]


def test_memory_info_is_what_a_request_may_get(told):
    assert told["information"] == [True, True]


def test_memory_is_not_shared_by_handles(told):
    assert told["shared"].startswith("NotImplementedError: ")


def test_a_limit_is_a_memory_error_with_the_report(told):
    is_strata_s, text = told["limited"]
    assert is_strata_s and text.startswith("out of memory in gpu:0") and "try:" in text
    assert told["limited small"] == told["lifted"] == "ok"
    assert told["kept"] == MIB


def test_threads(told):
    assert told["after the threads"] == 0


def test_a_default_stream_for_each_thread_is_served_as_such(program):
    """Else one thread would be given what another's work still uses."""
    assert program("gpu")[0]["seen by a thread"] == [2, MIB]
    assert program("gpu", "threads")[0]["seen by a thread"] == [1, MIB]


def test_everything_goes_back(told):
    """Also an array that outlives a reset of Numba's context."""
    assert told["after the reset"] == 1
    assert told["live"] == told["leaks"] == 0
