"""Arrays of CuPy's that are served by Strata. The first argument names the devices. What the program leaves is torn down as usual."""

import gc
import json
import sys
import threading

import linked_runtime
import numpy
from cupy_backends.cuda.api import runtime
from torch_common import FAKE, outcome, streams_of

results = {"led": linked_runtime.lead(runtime.__file__, FAKE)}  # before CuPy asks it anything

import cupy  # noqa: E402

import strata.cupy  # noqa: E402

MIB = 1 << 20
FLOATS = numpy.arange(MIB // 4, dtype=numpy.float32)


def live(**which):
    return facade.statistics(**which).live_allocations


def size_of(array):
    return facade.block_of(array.data.ptr).size


def allocate(mebibytes):
    return cupy.empty(mebibytes * MIB, dtype=numpy.uint8)


def arrays():
    """On the default stream; and what is copied."""
    array = cupy.asarray(FLOATS)
    results["served"] = [size_of(array), live(), live(stream=0)]
    results["bytes"] = bool(numpy.array_equal(array.get(), FLOATS))
    other = cupy.zeros_like(array)
    results["zeros"] = not other.get().any()
    other.data.copy_from_device(array.data, array.nbytes)
    results["bytes again"] = bool(numpy.array_equal(other.get(), FLOATS))
    results["a view"] = facade.block_around(other[5:].data.ptr).ptr == other.data.ptr
    was = array.data.ptr
    del array, other
    gc.collect()
    results["freed"] = live()
    results["served again"] = cupy.empty(FLOATS.shape, FLOATS.dtype).data.ptr == was
    results["nothing"] = cupy.empty(0).data.ptr


def streams():
    """The current stream is the thread's own; arrays go where it was when they were made."""
    own, other, told = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(), []
    with own:
        first = cupy.asarray(FLOATS)
        thread = threading.Thread(target=lambda: told.append([allocate(1), live(stream=0), live(stream=own)]))
        thread.start()
        thread.join()
        with other:
            second = allocate(1)
    results["streams"] = [live(stream=own), live(stream=other), *told.pop()[1:]]
    results["differ"] = len({own.ptr, other.ptr, 0})
    facade.block_of(first.data.ptr).record_stream(other)
    del first, second
    gc.collect()
    results["after the streams"] = live()


def limited():
    kept = allocate(1)
    facade.set_limit(facade.statistics().reserved_bytes)
    try:
        allocate(512)
    except cupy.cuda.memory.OutOfMemoryError as error:
        results["limited"] = [type(error).__name__, isinstance(error, strata.OutOfMemoryError), str(error)]
    results["limited small"] = outcome(lambda: allocate(1))
    facade.set_limit(None)
    results["lifted"] = outcome(lambda: allocate(512))
    results["kept"] = size_of(kept)


def below_a_pool():
    """CuPy's own pool above Strata: what it keeps goes back where Strata has no more."""
    pool = cupy.cuda.MemoryPool(strata.cupy.allocator(facade))
    facade.release()
    with cupy.cuda.using_allocator(pool.malloc):
        kept = allocate(1)
        allocate(60)
        results["the pool keeps"] = [pool.total_bytes() // MIB, live()]
        facade.set_limit(100 * MIB)
        results["in the pool"] = outcome(lambda: allocate(80))
        results["the pool had"] = pool.total_bytes() // MIB
        results["too much"] = outcome(lambda: allocate(200))
        facade.set_limit(None)
        results["the pool's"] = facade.block_around(kept.data.ptr).ptr == kept.data.ptr
        del kept
    pool.free_all_blocks()
    results["after the pool"] = live()


def pinned():
    memory = cupy.cuda.alloc_pinned_memory(8 * MIB)  # more than the copies have left behind
    results["pinned"] = [memory.size() >= 8 * MIB, FAKE.fake_cudart_host_mallocs() > 0, live()]


facade = strata.open("strata", devices=sys.argv[1], ignore_environment=True)
streams_of(facade)
results["installed"] = strata.cupy.install(facade=facade) is facade
for part in (arrays, streams, limited, below_a_pool, pinned):
    part()
gc.collect()
results["live"] = live()
results["mallocs"] = FAKE.fake_cudart_mallocs()
cupy.cuda.set_allocator(None)
results["without the door"] = [outcome(lambda: allocate(1)), FAKE.fake_cudart_mallocs()]
facade.validate()
results["leaks"] = len(facade.close("force"))
print("RESULTS " + json.dumps(results), flush=True)
