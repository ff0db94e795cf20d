"""Strata as the external allocator of ONNX Runtime's CUDA provider, in the place of its arena.

    import onnxruntime, strata, strata.onnxruntime
    memory = strata.open("mine.yaml")
    session = onnxruntime.InferenceSession("model.onnx", providers=[strata.onnxruntime.provider(memory)])

ONNX Runtime asks for memory without a stream and reuses it in the order of its compute stream. So the provider is told the stream that the
memory is served for: a new one, or the program's own. With `gpu_mem_limit` unused, `memory.set_limit()` is the limit.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Dict, List, Optional, Tuple

from .errors import StrataError
from .facade import Facade, stream_handle
from .places import gpu

__all__ = ["options", "provider"]

_Alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
_Free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_EmptyCache = ctypes.CFUNCTYPE(None)

_MINE = {"device_id", "user_compute_stream", "gpu_external_alloc", "gpu_external_free", "gpu_external_empty_cache"}

#: Sessions hold the bare addresses of functions, and nobody says when the last one ends: they stay for the life of the process.
_held: List[Any] = []


class Functions:
    """alloc, free and empty_cache as the provider calls them, from any thread. None of them may raise."""

    def __init__(self, facade: Facade, device: int, stream: int) -> None:
        self.facade = facade
        self.place = gpu(device)
        self.stream = stream

    def alloc(self, size: int) -> Optional[int]:
        """None ends the run with an error of ONNX Runtime's, which has no words for it: the report goes to stderr."""
        try:
            return self.facade.allocate(size, place=self.place, stream=self.stream).ptr
        except StrataError as error:
            _tell(error)
            return None

    def free(self, pointer: Optional[int]) -> None:
        """Reused in the order of the stream."""
        try:
            if pointer:
                self.facade.free(pointer)
        except StrataError as error:
            _tell(error)

    def empty_cache(self) -> None:
        """After what a session held for its whole life: idle memory goes back to the device."""
        try:
            self.facade.release(self.place)
        except StrataError as error:
            _tell(error)


def _tell(error: StrataError) -> None:
    print(f"strata.onnxruntime: {error}", file=sys.stderr, flush=True)


def options(facade: Facade, device: int = 0, *, stream: Any = None, **others: Any) -> Dict[str, str]:
    """Options of CUDAExecutionProvider over an open facade.

    Args:
        stream: that the provider computes on, as PyTorch, CuPy and others have it; None: a new one of the facade's. Work on other streams
            must be ordered against it, as ONNX Runtime asks anyway. The default stream has no number that the provider would take.
        others: more options of the provider, as it names them.

    The functions, and a new stream, are there until the process ends; the facade must stay open as long as a session uses them.
    """
    taken = sorted(_MINE & set(others))
    if taken:
        raise TypeError(f"strata.onnxruntime gives {', '.join(taken)} itself")
    if stream is None:
        stream = facade.stream(gpu(device), name="onnxruntime")
    handle = stream_handle(stream)
    if handle == 0:
        raise ValueError("ONNX Runtime's provider cannot be told the default stream: make another, or leave `stream` out")
    functions = Functions(facade, device, handle)
    alloc, free, empty_cache = _Alloc(functions.alloc), _Free(functions.free), _EmptyCache(functions.empty_cache)
    _held.append((alloc, free, empty_cache, stream))
    return {
        **{name: str(value) for name, value in others.items()},
        "device_id": str(device),
        "user_compute_stream": str(handle),
        "gpu_external_alloc": _address(alloc),
        "gpu_external_free": _address(free),
        "gpu_external_empty_cache": _address(empty_cache),
    }


def provider(facade: Facade, device: int = 0, *, stream: Any = None, **others: Any) -> Tuple[str, Dict[str, str]]:
    """An entry of `providers=` of InferenceSession: the name and options()."""
    return "CUDAExecutionProvider", options(facade, device, stream=stream, **others)


def _address(function: Any) -> str:
    """As the provider parses it."""
    return str(ctypes.cast(function, ctypes.c_void_p).value)
