"""Strata as the external allocator of ONNX Runtime's CUDA provider, in the place of its arena.

    import onnxruntime, strata, strata.onnxruntime
    memory = strata.open("mine.yaml")
    session = onnxruntime.InferenceSession("model.onnx", providers=[strata.onnxruntime.provider(memory)])

A provider with an external allocator computes on the device's legacy default stream, and ONNX Runtime accepts no other stream for
it. It requests memory without a stream, so Strata serves the memory for that stream. ONNX Runtime calls the library directly,
without Python. `memory.set_limit()` sets the limit, and `gpu_mem_limit` has no effect. `gpu_external_empty_cache` is not set,
because ONNX Runtime calls it in the middle of runs. Strata releases idle memory by itself when a request lacks memory.

If the provider cannot be made, ONNX Runtime prints the reason and continues without it: `session.get_providers()` lists the
providers of a session. A request that fails ends the run with an exception of ONNX Runtime, which reports a failed allocation. The
reason is in Strata's log.

Memory that is allocated outside sessions, such as an OrtValue on the device, has one allocator for the whole process. It is the
allocator of the last session before the first such value, or an arena of ONNX Runtime if there was no session. So make a session
first.
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
    """Returns options of CUDAExecutionProvider over an open facade, which must stay open as long as a session uses them. With
    STRATA_BYPASS, it returns options that keep the provider's own arena.

    Non-blocking streams, such as PyTorch's, do not wait for the default stream. The program must order their work against it.

    Args:
        others: more options of the provider, by their names. `user_compute_stream` is refused, because ONNX Runtime refuses it
            with an external allocator. `enable_cuda_graph` is refused, because the default stream cannot be captured.
    """
    taken = sorted(_MINE & set(others))
    if taken:
        raise TypeError(f"strata.onnxruntime sets {', '.join(taken)} itself")
    if _STREAM & set(others):
        raise ValueError("user_compute_stream cannot be used with an external allocator: the provider computes on the default stream")
    if str(others.get("enable_cuda_graph", 0)).lower() not in ("0", "false"):
        raise ValueError("enable_cuda_graph cannot be used with an external allocator: the default stream cannot be captured")
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
    """Returns an entry for `providers=` of InferenceSession: the name and options()."""
    return "CUDAExecutionProvider", options(facade, device, **others)


# Sessions have only the addresses of functions, so this list keeps their facades alive.
_kept: List[Facade] = []
