"""Buffers of RMM's that are served by Strata. The first argument names the devices. What the program leaves is torn down as usual."""

import gc
import json
import sys
import threading

import linked_runtime
import numpy
from torch_common import FAKE, outcome

results = {"led": linked_runtime.lead_bindings(FAKE)}  # before RMM takes its functions

import rmm  # noqa: E402
from rmm.pylibrmm.stream import Stream  # noqa: E402

import strata.rmm  # noqa: E402

MIB = 1 << 20
BYTES = numpy.arange(MIB, dtype=numpy.uint8)


def live(**which):
    return facade.statistics(**which).live_allocations


def buffers():
    """On the default stream."""
    first = rmm.DeviceBuffer(size=MIB)
    results["served"] = [facade.block_of(first.ptr).size, live(), live(stream=0)]
    was = first.ptr
    del first
    results["freed"] = live()
    results["served again"] = rmm.DeviceBuffer(size=MIB).ptr == was
    results["nothing"] = [rmm.DeviceBuffer(size=0).ptr, live()]
    pointer = rmm.mr.get_per_device_resource(0).allocate(MIB)
    results["by hand"] = facade.block_of(int(pointer)).size
    rmm.mr.get_per_device_resource(0).deallocate(pointer, MIB)


def streams():
    """On others; a buffer goes back in the order of the stream that RMM names, here another than it was made for."""
    own, other = facade.stream(), facade.stream()
    one, two = rmm.DeviceBuffer(size=MIB, stream=Stream(own)), rmm.DeviceBuffer(size=MIB, stream=Stream(other))
    results["streams"] = [live(stream=own), live(stream=other), live(stream=0)]
    one.copy_from_host(BYTES, stream=Stream(own))
    two.copy_from_device(one, stream=Stream(own))
    results["bytes"] = bool(numpy.array_equal(two.copy_to_host(stream=Stream(own)), BYTES))
    mine = rmm.mr.get_current_device_resource()
    pointer = mine.allocate(MIB, Stream(own))
    if sys.argv[1] != "gpu":
        other.work(500, facade.block_of(int(pointer)))
    mine.deallocate(pointer, MIB, Stream(other))
    results["deferred"] = facade.statistics().deferred_bytes
    del one, two
    results["after the streams"] = live()


def limited():
    kept = rmm.DeviceBuffer(size=MIB)
    facade.set_limit(facade.statistics().reserved_bytes)
    try:
        rmm.DeviceBuffer(size=512 * MIB)
    except MemoryError as error:
        results["limited"] = str(error)
    results["limited small"] = outcome(lambda: rmm.DeviceBuffer(size=MIB))
    facade.set_limit(None)
    results["lifted"] = outcome(lambda: rmm.DeviceBuffer(size=512 * MIB))
    results["kept"] = facade.block_of(kept.ptr).size


def below_adaptors():
    """RMM's own resources above Strata's."""
    mine = rmm.mr.get_current_device_resource()
    counting = rmm.mr.StatisticsResourceAdaptor(mine)
    limiting = rmm.mr.LimitingResourceAdaptor(counting, 2 * MIB)
    one = rmm.DeviceBuffer(size=MIB, mr=limiting)
    results["counted"] = [counting.allocation_counts.current_bytes, facade.block_of(one.ptr).size]
    results["RMM's limit"] = outcome(lambda: rmm.DeviceBuffer(size=2 * MIB, mr=limiting))
    del one
    results["counted after"] = counting.allocation_counts.current_bytes


def threads():
    def work():
        for _ in range(50):
            rmm.DeviceBuffer(size=MIB)

    several = [threading.Thread(target=work) for _ in range(4)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    results["after the threads"] = live()


facade = strata.open("strata", devices=sys.argv[1], ignore_environment=True)
results["installed"] = strata.rmm.install(facade=facade) is facade
for part in (buffers, streams, limited, below_adaptors, threads):
    part()
gc.collect()
results["live"] = live()
results["mallocs"] = FAKE.fake_cudart_mallocs()
facade.validate()
late = rmm.DeviceBuffer(size=MIB)
results["leaks"] = len(facade.close("force"))
late = None
results["late"] = outcome(lambda: rmm.DeviceBuffer(size=MIB))
print("RESULTS " + json.dumps(results), flush=True)
