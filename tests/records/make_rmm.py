"""Makes samples/rmm.csv: what RMM's own logging_resource_adaptor writes of a few requests, one of which fails. No GPU is needed: host
memory stands in for the device's, and the number of the current device is said here.

    pip install rmm-cu12 && python3 make_rmm.py && mv rmm.dev0.log samples/rmm.csv
"""
import ctypes

import rmm
import rmm.pylibrmm.memory_resource._memory_resource as resources

resources.getDevice = lambda: 0
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


def allocate(size, stream=None):
    if size > 1 << 30:
        raise MemoryError("too much")
    return libc.malloc(size)


def deallocate(pointer, size, stream=None):
    libc.free(pointer)


resource = rmm.mr.LoggingResourceAdaptor(rmm.mr.CallbackMemoryResource(allocate, deallocate), log_file_name="rmm.log")
live = []
for i in range(12):
    size = 1000 * (i + 1)
    live.append((resource.allocate(size), size))
    if i % 3 == 2:
        resource.deallocate(*live.pop(0))
try:
    resource.allocate(1 << 31)
except MemoryError:
    pass
for block in live[:-1]:
    resource.deallocate(*block)
resource.flush()
