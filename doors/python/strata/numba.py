"""Strata as Numba's external memory manager for CUDA.

    import strata.numba
    strata.numba.install("mine.yaml")     # before the first use of CUDA

or set NUMBA_CUDA_MEMORY_MANAGER=strata.numba, with STRATA_STRATEGY for the strategy. Numba requests memory without a stream, so the
memory belongs to the default stream. Before an array is freed, work on other streams must be complete, or be recorded with
`facade.block_of(address).record_stream(stream)`. Numba's own manager frees by a call that may wait for the device. Strata does not
wait.
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
    """Returns a class for numba.cuda.set_memory_manager(). Without a facade, the first context opens one, as strata.open() does.
    With STRATA_BYPASS, it returns Numba's own class."""
    from numba import cuda

    if bypassed("Numba"):
        return cuda.cudadrv.driver.NumbaCUDAMemoryManager
    stream = _default_stream(cuda)

    class StrataManager(cuda.HostOnlyCUDAMemoryManager):  # type: ignore[misc]
        """Serves device memory. Pinned, mapped and managed memory remains Numba's."""

        _facade = facade

        def initialize(self) -> None:
            if type(self)._facade is None:
                type(self)._facade = door_facade()
            super().initialize()

        def memalloc(self, size: int) -> Any:
            """Serves device memory. If there is none, it raises MemoryError (strata.OutOfMemoryError) with the report."""
            block = self._opened().allocate(size, place=gpu(self.context.device.id), stream=stream)
            # The pointer is in no list of Numba, because reset() empties the lists while arrays are still live.
            return cuda.MemoryPointer(self.context, _pointer(cuda, block.ptr), size, finalizer=block.free)

        def _opened(self) -> Facade:
            if self._facade is None:
                raise RuntimeError("Numba has not created a context yet")
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
    """Returns the handle of Numba's default stream, which NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM selects."""
    return _PER_THREAD if cuda.cudadrv.driver.config.CUDA_PER_THREAD_DEFAULT_STREAM else _LEGACY


def _pointer(cuda: Any, address: int) -> Any:
    """Returns the address in the type of Numba's driver bindings."""
    driver = cuda.cudadrv.driver
    if getattr(driver, "USE_NV_BINDING", True):  # newer versions have no other bindings
        return driver.binding.CUdeviceptr(address)
    return ctypes.c_uint64(address)


def install(strategy: StrategyLike = None, *, facade: Optional[Facade] = None, **options: Any) -> Facade:
    """Makes Strata Numba's memory manager, with the arguments of strata.open() or with an open facade. It must be called before the
    first use of CUDA. Returns the facade."""
    from numba import cuda

    bypass = bypassed("Numba")
    opened = of_or_open(facade, strategy, bypass=bypass, **options)
    if not bypass:
        cuda.set_memory_manager(manager(opened))
    return opened


def __getattr__(name: str) -> Any:
    # NUMBA_CUDA_MEMORY_MANAGER=strata.numba makes Numba look up this name.
    if name == "_numba_memory_manager":
        return manager()
    raise AttributeError(name)
