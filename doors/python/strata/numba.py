"""Strata as Numba's external memory manager for CUDA.

    import strata.numba
    strata.numba.install("mine.yaml")     # before the first use of CUDA

or NUMBA_CUDA_MEMORY_MANAGER=strata.numba, with STRATA_STRATEGY for the strategy. Numba asks for memory without a stream: it belongs to the
default one, and work on others must be waited for or recorded, `facade.block_of(address).record_stream(stream)`, before the array goes.
Numba's own manager frees by a call that may wait for the device; this one does not wait.
"""

from __future__ import annotations

import ctypes
from typing import Any, Optional

from ._doors import bypassed, door_facade, of_or_open
from .facade import Facade, StrategyLike
from .places import gpu

__all__ = ["install", "manager"]

_LEGACY, _PER_THREAD = 0, 2


def manager(facade: Optional[Facade] = None) -> Any:
    """A class for numba.cuda.set_memory_manager(). Without a facade the first context opens one, as strata.open() does. With STRATA_BYPASS,
    Numba's own."""
    from numba import cuda

    if bypassed("Numba"):
        return cuda.cudadrv.driver.NumbaCUDAMemoryManager
    stream = _default_stream(cuda)

    class StrataManager(cuda.HostOnlyCUDAMemoryManager):  # type: ignore[misc]
        """Device memory is Strata's; pinned, mapped and managed memory stays Numba's."""

        _facade = facade

        def initialize(self) -> None:
            if type(self)._facade is None:
                type(self)._facade = door_facade()
            super().initialize()

        def memalloc(self, size: int) -> Any:
            """MemoryError (strata.OutOfMemoryError) has the report."""
            block = self._opened().allocate(size, place=gpu(self.context.device.id), stream=stream)
            # Numba keeps no list of it: reset() empties what it has while arrays still live.
            return cuda.MemoryPointer(self.context, _pointer(cuda, block.ptr), size, finalizer=block.free)

        def _opened(self) -> Facade:
            if self._facade is None:
                raise RuntimeError("Numba has not made a context yet")
            return self._facade

        def get_memory_info(self) -> Any:
            info = self._opened().mem_info(gpu(self.context.device.id))
            return cuda.MemoryInfo(free=info["free"] + info["cached"], total=info["total"])

        def get_ipc_handle(self, memory: Any) -> Any:
            raise NotImplementedError("Strata shares memory by descriptors (include/strata/share.h), which Numba cannot open")

        @property
        def interface_version(self) -> int:
            return 1

    return StrataManager


def _default_stream(cuda: Any) -> int:
    """What Numba means by the default stream; NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM says it."""
    return _PER_THREAD if cuda.cudadrv.driver.config.CUDA_PER_THREAD_DEFAULT_STREAM else _LEGACY


def _pointer(cuda: Any, address: int) -> Any:
    """The address as Numba's bindings of the driver have it."""
    driver = cuda.cudadrv.driver
    if getattr(driver, "USE_NV_BINDING", True):  # newer ones have no other
        return driver.binding.CUdeviceptr(address)
    return ctypes.c_uint64(address)


def install(strategy: StrategyLike = None, *, facade: Optional[Facade] = None, **options: Any) -> Facade:
    """Makes Strata Numba's memory manager, before the first use of CUDA. Takes what strata.open() takes, or a facade that is open;
    answers the facade."""
    from numba import cuda

    bypass = bypassed("Numba")
    opened = of_or_open(facade, strategy, bypass=bypass, **options)
    if not bypass:
        cuda.set_memory_manager(manager(opened))
    return opened


def __getattr__(name: str) -> Any:
    # What NUMBA_CUDA_MEMORY_MANAGER=strata.numba looks for.
    if name == "_numba_memory_manager":
        return manager()
    raise AttributeError(name)
