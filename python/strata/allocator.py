"""Allocators: one value for a facade, a place, a stream and a pool, for a component that is handed its memory."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, NamedTuple, Optional, SupportsIndex

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
    """The struct of a request."""
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
    """What an allocator names. `pool` is POOL_ORDINARY outside pools."""

    place: Place
    stream: int
    pool: int


class Functions(NamedTuple):
    """The addresses of two C functions, void *allocate(size_t) and void free(void *), for libraries that take such."""

    allocate: int
    free: int


class Allocator(_handle.ProcessObject):
    """Serves one stream of one place, from Facade.allocator(). It ends with that stream's stack (include/strata/allocator.h)."""

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
        """Serves `size` bytes; the arguments are those of Facade.allocate()."""
        told = allocate_options(
            size, alignment=alignment, zero=zero, grow=grow, retry=retry, report=report, tag=tag, freed_before=freed_before
        )
        block = _abi.Block()
        check(library().strata_allocator_allocate_with(self.struct, ctypes.byref(told), ctypes.byref(block)))
        return Block(self.facade, block)

    def free(self, block: Block) -> None:
        """Gives back any block of the facade; fastest for one that this allocator served."""
        check(library().strata_allocator_free(self.struct, _arguments.ref(block, "block")))

    def release(self) -> int:
        """Gives the idle chunks of its own stack back to the device. Returns the bytes."""
        released = ctypes.c_uint64()
        check(library().strata_allocator_release(self.struct, ctypes.byref(released)))
        return released.value

    def statistics(self) -> Statistics:
        """The figures of its stack."""
        told = _abi.Statistics(ctypes.sizeof(_abi.Statistics))
        check(library().strata_allocator_statistics(self.struct, ctypes.byref(told)))
        return Statistics.of(told)

    def describe(self) -> AllocatorInfo:
        """The place, the stream and the pool."""
        told = _abi.AllocatorInfo(ctypes.sizeof(_abi.AllocatorInfo))
        check(library().strata_allocator_describe(self.struct, ctypes.byref(told)))
        return AllocatorInfo(Place.of_code(told.place), told.stream or 0, told.pool)

    def functions(self) -> Functions:
        """Two C functions, which may be called as long as the process lives. A request that fails returns NULL, and the reason goes to
        the log. Keep the facade open, and a reference to it, as long as they are in use."""
        told = _abi.Functions()
        check(library().strata_allocator_functions(self.struct, ctypes.byref(told)))
        return Functions(told.allocate or 0, told.free or 0)
