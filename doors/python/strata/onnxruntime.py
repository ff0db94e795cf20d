"""Strata as the external allocator of ONNX Runtime's CUDA provider, in the place of its arena.

    import onnxruntime, strata, strata.onnxruntime
    memory = strata.open("mine.yaml")
    session = onnxruntime.InferenceSession("model.onnx", providers=[strata.onnxruntime.provider(memory)])

A provider with an external allocator computes on the device's legacy default stream, and ONNX Runtime takes no other beside one. Memory is
asked for without a stream, so it is served for that one. It calls the library, and no Python. `memory.set_limit()` is the limit, and
`gpu_mem_limit` does nothing. `gpu_external_empty_cache` is left out: ONNX Runtime calls it in the middle of runs, and Strata gives idle
memory back by itself where a request lacks some.

Where the provider cannot be made, ONNX Runtime prints why and goes on without it: `session.get_providers()` tells which it has. A request
that is not served ends the run with an exception of ONNX Runtime's, which says that an allocation failed; the reason is in Strata's log.

What is allocated outside sessions, such as an OrtValue on the device, comes from one allocator for the whole process: that of the last
session before the first such value, or an arena of ONNX Runtime's own where there was none. So make a session first.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from ._doors import bypassed
from .facade import Facade
from .places import gpu

__all__ = ["options", "provider"]

_MINE = {"device_id", "gpu_external_alloc", "gpu_external_free", "gpu_external_empty_cache"}
_STREAM = {"user_compute_stream", "has_user_compute_stream"}
_LEGACY = 0


def options(facade: Facade, device: int = 0, **others: Any) -> Dict[str, str]:
    """Options of CUDAExecutionProvider over an open facade, which must stay open as long as a session uses them. With STRATA_BYPASS, options
    that keep the provider's own arena.

    Work on a stream that does not wait for the default stream by itself, as PyTorch's and other non-blocking ones do not, must be ordered
    against it.

    Args:
        others: more options of the provider, as it names them. `user_compute_stream` is refused, as ONNX Runtime refuses it beside an
            external allocator; so is `enable_cuda_graph`: it would capture the default stream, which cannot be captured.
    """
    taken = sorted(_MINE & set(others))
    if taken:
        raise TypeError(f"strata.onnxruntime gives {', '.join(taken)} itself")
    if _STREAM & set(others):
        raise ValueError("user_compute_stream does not go with an external allocator: the provider computes on the default stream")
    if str(others.get("enable_cuda_graph", 0)).lower() not in ("0", "false"):
        raise ValueError("enable_cuda_graph does not go with an external allocator: the default stream cannot be captured")
    mine = {**{name: str(value) for name, value in others.items()}, "device_id": str(device)}
    if bypassed("ONNX Runtime"):
        return mine
    functions = facade.allocator(gpu(device), _LEGACY).functions()
    _kept[:] = [kept for kept in _kept if kept is not facade and not kept.closed] + [facade]
    return {
        **mine,
        "gpu_external_alloc": str(functions.allocate),
        "gpu_external_free": str(functions.free),
    }


def provider(facade: Facade, device: int = 0, **others: Any) -> Tuple[str, Dict[str, str]]:
    """An entry of `providers=` of InferenceSession: the name and options()."""
    return "CUDAExecutionProvider", options(facade, device, **others)


# Sessions have only the addresses of functions, so this list keeps their facades alive.
_kept: List[Facade] = []
