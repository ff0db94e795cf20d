"""What the programs under a real PyTorch, or another of these libraries, share: streams of the simulated device, and what a call does."""

import ctypes
import json
import os

if "STRATA_FAKE_CUDART" in os.environ:  # not on a GPU
    FAKE = ctypes.CDLL(os.environ["STRATA_FAKE_CUDART"])
    FAKE.fake_cudart_mallocs.restype = ctypes.c_uint64
_kept = []


def streams_of(facade):
    """PyTorch's streams are the facade's from now on."""
    maker_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))

    def make(priority, told):
        told[0] = facade.stream(priority=priority).handle
        return 0

    _kept.append(maker_type(make))
    FAKE.fake_cudart_streams(_kept[-1])


def outcome(call):
    """"ok", or the exception's type and first line."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is asked
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return "ok"


def tell(results):
    """The results on one line, and the end: what PyTorch does at exit needs a runtime that does something."""
    print("RESULTS " + json.dumps(results), flush=True)
    os._exit(0)
