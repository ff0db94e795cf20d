"""Strata as CuPy's allocator: every request goes to the current stream of the thread that makes it.

    import strata.cupy
    strata.cupy.install("mine.yaml")

CuPy's own pool is replaced. To keep it above Strata: `cupy.cuda.set_allocator(cupy.cuda.MemoryPool(strata.cupy.allocator(facade)).malloc)`.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

from ._doors import bypassed, of_or_open
from .errors import OutOfMemoryError
from .facade import Facade, StrategyLike
from .places import gpu
from .stream import stream_handle

__all__ = ["allocator", "install"]

_MEMORY_ALLOCATION: Any = 2  # cudaErrorMemoryAllocation


class Functions:
    """malloc and free as CuPy calls them."""

    def __init__(self, facade: Facade, cupy: Any) -> None:
        self.facade = facade
        self._current = cupy.cuda.get_current_stream
        self._out_of_memory = _error_of(cupy)

    def malloc(self, size: int, device: int) -> int:
        """Memory for the thread's current stream. Out of memory is CuPy's exception and Strata's at once: it has the report, and as its
        `status` the runtime's number, which CuPy asks for."""
        try:
            return self.facade.allocate(size, place=gpu(device), stream=stream_handle(self._current())).ptr
        except OutOfMemoryError as error:
            raise self._out_of_memory(error) from None

    def free(self, pointer: int, device: int) -> None:
        """The memory is reused in the order of the stream that it was served for. Work on another stream must be recorded:
        `facade.block_of(array.data.mem.ptr).record_stream(stream)`."""
        if pointer:
            self.facade.free(pointer)


def _error_of(cupy: Any) -> Callable[[OutOfMemoryError], Exception]:
    """The exception's type. CuPy's MemoryPool gives back what it keeps, and asks again, where the runtime's own error says so."""

    class Error(OutOfMemoryError, cupy.cuda.memory.OutOfMemoryError, cupy.cuda.runtime.CUDARuntimeError):  # type: ignore[misc]
        def __init__(self, error: OutOfMemoryError) -> None:
            MemoryError.__init__(self, str(error))
            self.__dict__.update(error.__dict__)
            self.status = _MEMORY_ALLOCATION

    Error.__name__ = Error.__qualname__ = "OutOfMemoryError"
    return Error


def allocator(facade: Facade) -> Any:
    """An allocator of CuPy's over an open facade, for cupy.cuda.set_allocator(), using_allocator() or MemoryPool(). With STRATA_BYPASS, that of
    CuPy's default pool."""
    import cupy

    if bypassed("CuPy"):
        return cupy.get_default_memory_pool().malloc
    functions = Functions(facade, cupy)
    return cupy.cuda.memory.PythonFunctionAllocator(functions.malloc, functions.free).malloc


def install(strategy: StrategyLike = None, *, facade: Optional[Facade] = None, **options: Any) -> Facade:
    """Makes Strata the allocator of all threads; takes what strata.open() takes, or a facade that is open. Answers the facade."""
    import cupy

    bypass = bypassed("CuPy")
    opened = of_or_open(facade, strategy, bypass=bypass, **options)
    if not bypass:
        cupy.cuda.set_allocator(allocator(opened))
    return opened
