"""Arrays of Numba's that are served by Strata. The first argument names the devices, the second who installs it: "Numba", as its
environment says, or else this program. What the program leaves is torn down as usual: the end is part of the test."""

import ctypes
import gc
import json
import mmap
import os
import sys
import threading

import numpy
from numba import cuda
from torch_common import outcome

import strata.numba

MIB = 1 << 20
FLOATS = numpy.arange(MIB // 4, dtype=numpy.float32)
DRIVER = ctypes.CDLL(os.path.join(os.environ["STRATA_STAND_INS"], "libcuda.so.1"))
DEFAULT = 2 if "NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM" in os.environ else 0
results = {}


def calls(name):
    return DRIVER.stand_in_calls(name.encode())


def live(**which):
    return facade.statistics(**which).live_allocations


def pointer(array):
    return array.__cuda_array_interface__["data"][0]


def size_of(array):
    return facade.block_of(pointer(array)).size


def allocate(mebibytes):
    return cuda.device_array(mebibytes * MIB, dtype=numpy.uint8)


def right(array, **on):
    return bool(numpy.array_equal(array.copy_to_host(**on), FLOATS))


def arrays():
    first = cuda.to_device(FLOATS)
    results["served"] = [size_of(first), live(), live(stream=DEFAULT)]
    other = cuda.device_array_like(first)
    other.copy_to_device(first)
    results["bytes"] = [right(first), right(other), bool(numpy.array_equal(other[5:9].copy_to_host(), FLOATS[5:9]))]
    view, was = first[5:], pointer(first)
    results["a view"] = facade.block_around(pointer(view)).ptr == was
    del first, other
    gc.collect()
    results["with the view"] = live()
    del view
    gc.collect()
    results["freed"] = live()
    again = cuda.device_array_like(FLOATS)
    results["served again"] = pointer(again) == was
    results["nothing"] = [cuda.device_array(0).size, live()]


def streams():
    """Numba asks without a stream, so whoever works on another tells Strata."""
    stream = cuda.stream()
    array = cuda.to_device(FLOATS, stream=stream)
    facade.block_of(pointer(array)).record_stream(stream)
    results["bytes on a stream"] = right(array, stream=stream)
    results["on a stream"] = [live(stream=DEFAULT), live()]
    del array
    gc.collect()
    results["after the stream"] = live()


def of_the_host():
    """What is pinned, mapped or managed stays Numba's: the driver is asked, and gets it back."""
    names = ("MemHostAlloc", "MemFreeHost", "MemAllocManaged", "MemHostRegister", "MemHostUnregister")
    before, page = [calls(name) for name in names], numpy.frombuffer(mmap.mmap(-1, 4096), dtype=numpy.uint8)
    kept = [cuda.pinned_array(100), cuda.mapped_array(100), cuda.managed_array(100)]
    with cuda.pinned(page):
        results["of the host"] = live()
    del kept
    gc.collect()
    cuda.current_context().memory_manager.deallocations.clear()  # else Numba gathers ten of the host's blocks before it frees one
    results["asked for it"] = [calls(name) - was for name, was in zip(names, before)]


def information():
    told, mine = cuda.current_context().get_memory_info(), facade.mem_info()
    results["information"] = [told.free == mine["free"] + mine["cached"], told.total == mine["total"]]
    results["shared"] = outcome(lambda: allocate(1).get_ipc_handle())


def limited():
    kept = allocate(1)
    facade.set_limit(facade.statistics().reserved_bytes)
    try:
        allocate(512)
    except MemoryError as error:
        results["limited"] = [isinstance(error, strata.OutOfMemoryError), str(error)]
    results["limited small"] = outcome(lambda: allocate(1))
    facade.set_limit(None)
    results["lifted"] = outcome(lambda: allocate(512))
    results["kept"] = size_of(kept)


def threads():
    def work():
        for _ in range(20):
            allocate(1)

    kept, told = allocate(1), []
    one = threading.Thread(target=lambda: told.append((allocate(1), live(stream=DEFAULT))[1]))
    one.start()
    one.join()
    results["seen by a thread"] = [*told, size_of(kept)]
    del kept
    several = [threading.Thread(target=work) for _ in range(4)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    gc.collect()
    results["after the threads"] = live()


def forgotten():
    """Numba forgets what its context has while an array lives."""
    array = allocate(1)
    cuda.current_context().reset()
    results["after the reset"] = live()
    del array
    gc.collect()


if sys.argv[2] != "Numba":
    facade = strata.open("strata", devices=sys.argv[1], ignore_environment=True)
    results["installed"] = strata.numba.install(facade=facade) is facade
    cuda.current_context()
else:
    facade = cuda.current_context().memory_manager._facade
for part in (arrays, streams, of_the_host, information, limited, threads):
    part()
results["mine"] = [DRIVER.stand_in_used(0), facade.statistics().reserved_bytes]
results["asked"] = calls("MemAlloc")
forgotten()
results["live"] = live()
facade.validate()
results["leaks"] = len(facade.close("force"))
print("RESULTS " + json.dumps(results), flush=True)
