"""Strata as CuPy's allocator. Every request is served for the current stream of the calling thread.

    import strata.cupy
    strata.cupy.install("mine.yaml")

This replaces CuPy's own pool. To keep the pool above Strata, call
`cupy.cuda.set_allocator(cupy.cuda.MemoryPool(strata.cupy.allocator(facade)).malloc)`.
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
    """malloc and free, with the signatures of CuPy."""

    def __init__(self, facade: Facade, cupy: Any) -> None:
        self.facade = facade
        self._current = cupy.cuda.get_current_stream
        self._out_of_memory = _error_of(cupy)

    def malloc(self, size: int, device: int) -> int:
        """Returns memory for the thread's current stream.

        An out-of-memory error is both CuPy's exception and Strata's. It has the report, and its `status` is the runtime's number,
        which CuPy reads.
        """
        try:
            return self.facade.allocate(size, place=gpu(device), stream=stream_handle(self._current())).ptr
        except OutOfMemoryError as error:
            raise self._out_of_memory(error) from None

    def free(self, pointer: int, device: int) -> None:
        """Frees memory, which is then reused in the order of the stream that it was served for. Work on another stream must be
        recorded: `facade.block_of(array.data.mem.ptr).record_stream(stream)`."""
        if pointer:
            self.facade.free(pointer)


def _error_of(cupy: Any) -> Callable[[OutOfMemoryError], Exception]:
    """Returns the type of the exception. It derives from the runtime's error too, because CuPy's MemoryPool releases its memory and
    retries only after such an error."""

    class Error(OutOfMemoryError, cupy.cuda.memory.OutOfMemoryError, cupy.cuda.runtime.CUDARuntimeError):  # type: ignore[misc]
        def __init__(self, error: OutOfMemoryError) -> None:
            MemoryError.__init__(self, str(error))
            self.__dict__.update(error.__dict__)
            self.status = _MEMORY_ALLOCATION

    Error.__name__ = Error.__qualname__ = "OutOfMemoryError"
    return Error


def allocator(facade: Facade) -> Any:
    """Returns a CuPy allocator over an open facade, for cupy.cuda.set_allocator(), using_allocator() or MemoryPool(). With
    STRATA_BYPASS, it returns the allocator of CuPy's default pool."""
    import cupy

    if bypassed("CuPy"):
        return cupy.get_default_memory_pool().malloc
    functions = Functions(facade, cupy)
    return cupy.cuda.memory.PythonFunctionAllocator(functions.malloc, functions.free).malloc


def install(strategy: StrategyLike = None, *, facade: Optional[Facade] = None, **options: Any) -> Facade:
    """Makes Strata the allocator of all threads, with the arguments of strata.open() or with an open facade. Returns the facade."""
    import cupy

    bypass = bypassed("CuPy")
    opened = of_or_open(facade, strategy, bypass=bypass, **options)
    if not bypass:
        cupy.cuda.set_allocator(allocator(opened))
    return opened
