"""Allocators: one object for a facade, a place, a stream and a pool, for components that take an allocator as an argument."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, SupportsIndex

from . import _abi, _arguments, _handle
from ._library import library
from .block import Block
from .errors import check
from .figures import Statistics
from .places import Place

if TYPE_CHECKING:
    from .facade import Facade


def allocate_options(
    size: SupportsIndex,
    *,
    alignment: SupportsIndex = 0,
    zero: bool = False,
    grow: bool = True,
    retry: bool = True,
    report: bool = True,
    pool: SupportsIndex = 0,
    tag: Optional[str] = None,
    freed_before: SupportsIndex = 0,
) -> _abi.AllocateOptions:
    """Returns the options struct of a request."""
    flags = _abi.ZERO if _arguments.flag(zero, "zero") else 0
    flags |= 0 if _arguments.flag(grow, "grow") else _abi.NO_GROW
    flags |= 0 if _arguments.flag(retry, "retry") else _abi.NO_RETRY
    flags |= 0 if _arguments.flag(report, "report") else _abi.NO_REPORT
    return _abi.AllocateOptions(
        ctypes.sizeof(_abi.AllocateOptions),
        _arguments.integer(size, "size"),
        _arguments.integer(alignment, "alignment"),
        flags,
        _arguments.integer(pool, "pool"),
        _arguments.text_or_none(tag, "tag"),
        _arguments.integer(freed_before, "freed_before"),
    )


class AllocatorInfo(NamedTuple):
    """The parts of an allocator. `pool` is POOL_ORDINARY outside pools."""

    place: Place
    stream: int
    pool: int


class Functions(NamedTuple):
    """The addresses of two C functions, void *allocate(size_t) and void free(void *)."""

    allocate: int
    free: int


class Allocator(_handle.ProcessObject):
    """An allocator for one stream of one place, from Facade.allocator(). It ends with the stack of that stream
    (include/strata/allocator.h)."""

    __slots__ = ("facade", "struct")

    def __init__(self, facade: "Facade", struct: _abi.Allocator) -> None:
        self.facade = facade
        self.struct = struct

    def allocate(
        self,
        size: SupportsIndex,
        *,
        alignment: SupportsIndex = 0,
        zero: bool = False,
        grow: bool = True,
        retry: bool = True,
        report: bool = True,
        tag: Optional[str] = None,
        freed_before: SupportsIndex = 0,
    ) -> Block:
        """Serves `size` bytes. The arguments are those of Facade.allocate()."""
        options = allocate_options(
            size, alignment=alignment, zero=zero, grow=grow, retry=retry, report=report, tag=tag, freed_before=freed_before
        )
        block = _abi.Block()
        check(library().strata_allocator_allocate_with(self.struct, ctypes.byref(options), ctypes.byref(block)))
        return Block(self.facade, block)

    def free(self, block: Block) -> None:
        """Frees any block of the facade. It is fastest for blocks of this allocator."""
        check(library().strata_allocator_free(self.struct, _arguments.ref(block, "block")))

    def _filled(self, function: str, result: Any) -> Any:
        check(getattr(library(), "strata_allocator_" + function)(self.struct, ctypes.byref(result)))
        return result

    def release(self) -> int:
        """Releases the idle chunks of its own stack to the device. Returns the number of bytes released."""
        return int(self._filled("release", ctypes.c_uint64()).value)

    def statistics(self) -> Statistics:
        """Returns the statistics of its stack."""
        return Statistics.of(self._filled("statistics", _abi.Statistics(ctypes.sizeof(_abi.Statistics))))

    def describe(self) -> AllocatorInfo:
        """Returns the place, the stream and the pool."""
        info = self._filled("describe", _abi.AllocatorInfo(ctypes.sizeof(_abi.AllocatorInfo)))
        return AllocatorInfo(Place.of_code(info.place), info.stream or 0, info.pool)

    def functions(self) -> Functions:
        """Returns two C functions for this allocator, for libraries that need addresses.

        The addresses stay valid until the process ends. A request that fails returns NULL, and the log has the reason. The facade
        must stay open and referenced while the functions are in use.
        """
        functions = self._filled("functions", _abi.Functions())
        return Functions(functions.allocate or 0, functions.free or 0)
