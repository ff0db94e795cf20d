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
    """allocate and deallocate as RMM's CallbackMemoryResource calls them."""

    def __init__(self, facade: Facade, device: int) -> None:
        self.facade = facade
        self.place = gpu(device)

    def allocate(self, size: int, stream: Any = None) -> int:
        """RMM makes its own out_of_memory of a MemoryError. 0 bytes have no address."""
        return self.facade.allocate(size, place=self.place, stream=stream_handle(stream)).ptr if size else 0

    def deallocate(self, pointer: int, size: int, stream: Any = None) -> None:
        """`stream` is the last that used the memory, which RMM promises."""
        if pointer:
            self.facade.block_of(pointer).free_on(stream_handle(stream))


def resource(facade: Facade, device: int = 0) -> Any:
    """A resource of RMM's for one device over an open facade. It keeps the facade's functions alive. With STRATA_BYPASS, RMM's own."""
    import rmm

    if bypassed("RMM"):
        return rmm.mr.CudaMemoryResource()
    functions = Functions(facade, device)
    return rmm.mr.CallbackMemoryResource(functions.allocate, functions.deallocate)


def install(strategy: StrategyLike = None, *, facade: Optional[Facade] = None, device: int = 0, **options: Any) -> Facade:
    """Makes Strata the current resource of a device, before the first use of it. Takes what strata.open() takes, or a facade that is
    open; answers the facade."""
    import rmm

    bypass = bypassed("RMM")
    opened = of_or_open(facade, strategy, bypass=bypass, **options)
    if not bypass:
        rmm.mr.set_per_device_resource(device, resource(opened, device))
    return opened
