"""Strata as the external allocator of ONNX Runtime's CUDA provider, in the place of its arena.

    import onnxruntime, strata, strata.onnxruntime
    memory = strata.open("mine.yaml")
    session = onnxruntime.InferenceSession("model.onnx", providers=[strata.onnxruntime.provider(memory)])

ONNX Runtime asks for memory without a stream and reuses it in the order of its compute stream. So the provider is told the stream that the
memory is served for: a new one, or the program's own. It calls the library, and no Python. `memory.set_limit()` is the limit, and
`gpu_mem_limit` does nothing. `gpu_external_empty_cache` is left out: ONNX Runtime calls it in the middle of runs, and Strata gives idle
memory back by itself where a request lacks some.

What ONNX Runtime allocates outside sessions, such as an OrtValue on the device, comes from the allocator of the last session that was made.
"""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Tuple

from . import _abi
from ._library import library
from .errors import check
from .facade import Facade, stream_handle
from .places import gpu

__all__ = ["options", "provider"]

_MINE = {"device_id", "user_compute_stream", "gpu_external_alloc", "gpu_external_free", "gpu_external_empty_cache"}
_PER_THREAD = 2


def options(facade: Facade, device: int = 0, *, stream: Any = None, **others: Any) -> Dict[str, str]:
    """Options of CUDAExecutionProvider over an open facade, which must stay open as long as a session uses them.

    Args:
        stream: that the provider computes on, as PyTorch, CuPy and others have it; None: a new one of the facade's, which stays. Work on
            other streams must be ordered against it, as ONNX Runtime asks anyway. NULL cannot be told to the provider, and the per-thread
            stream is another one in each of its threads.
        others: more options of the provider, as it names them. `enable_cuda_graph` is refused: the provider asks for memory while it
            captures, and gives it back although the graph uses it.
    """
    taken = sorted(_MINE & set(others))
    if taken:
        raise TypeError(f"strata.onnxruntime gives {', '.join(taken)} itself")
    if str(others.get("enable_cuda_graph", 0)).lower() not in ("0", "false"):
        raise ValueError("enable_cuda_graph does not go with an external allocator: ONNX Runtime frees what its graph still uses")
    if stream is None:
        stream = facade.stream(gpu(device), name="onnxruntime")
    handle = stream_handle(stream)
    if handle in (0, _PER_THREAD):
        raise ValueError("ONNX Runtime's provider cannot share a default stream: make another, or leave `stream` out")
    functions = _functions(facade, device, handle)
    return {
        **{name: str(value) for name, value in others.items()},
        "device_id": str(device),
        "user_compute_stream": str(handle),
        "gpu_external_alloc": str(functions.allocate),
        "gpu_external_free": str(functions.free),
    }


def provider(facade: Facade, device: int = 0, *, stream: Any = None, **others: Any) -> Tuple[str, Dict[str, str]]:
    """An entry of `providers=` of InferenceSession: the name and options()."""
    return "CUDAExecutionProvider", options(facade, device, stream=stream, **others)


def _functions(facade: Facade, device: int, stream: int) -> _abi.Functions:
    allocator, functions = _abi.Allocator(), _abi.Functions()
    check(library().strata_allocator_get(facade.handle, gpu(device).code, stream, 0, ctypes.byref(allocator)))
    check(library().strata_allocator_functions(allocator, ctypes.byref(functions)))
    return functions
