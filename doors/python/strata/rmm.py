"""Strata as a memory resource of RMM, and so below cuDF and the rest of RAPIDS.

    import strata.rmm
    strata.rmm.install("mine.yaml")
"""

from __future__ import annotations

from typing import Any, Optional

from ._doors import bypassed, of_or_open
from .facade import Facade, StrategyLike
from .places import gpu
from .stream import stream_handle

__all__ = ["install", "resource"]


class Functions:
    """allocate and deallocate, with the signatures of RMM's CallbackMemoryResource."""

    def __init__(self, facade: Facade, device: int) -> None:
        self.facade = facade
        self.place = gpu(device)

    def allocate(self, size: int, stream: Any = None) -> int:
        """Serves `size` bytes. RMM converts a MemoryError to its own out_of_memory. A request of 0 bytes returns 0."""
        return self.facade.allocate(size, place=self.place, stream=stream_handle(stream)).ptr if size else 0

    def deallocate(self, pointer: int, size: int, stream: Any = None) -> None:
        """Frees memory. RMM guarantees that `stream` is the last stream that used it."""
        if pointer:
            self.facade.block_of(pointer).free_on(stream_handle(stream))


def resource(facade: Facade, device: int = 0) -> Any:
    """Returns an RMM resource for one device over an open facade. It keeps the facade's functions alive. With STRATA_BYPASS, it
    returns RMM's own resource."""
    import rmm

    if bypassed("RMM"):
        return rmm.mr.CudaMemoryResource()
    functions = Functions(facade, device)
    return rmm.mr.CallbackMemoryResource(functions.allocate, functions.deallocate)


def install(strategy: StrategyLike = None, *, facade: Optional[Facade] = None, device: int = 0, **options: Any) -> Facade:
    """Makes Strata the current resource of a device, with the arguments of strata.open() or with an open facade. It must be called
    before the first use of the device. Returns the facade."""
    import rmm

    bypass = bypassed("RMM")
    opened = of_or_open(facade, strategy, bypass=bypass, **options)
    if not bypass:
        rmm.mr.set_per_device_resource(device, resource(opened, device))
    return opened
