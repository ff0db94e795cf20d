"""Streams: streams of other libraries by their handles, and streams that a facade owns."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from . import _arguments, _handle
from ._arguments import Real
from ._library import library
from .errors import check
from .places import Place

if TYPE_CHECKING:
    from .block import Block
    from .facade import Facade


def stream_handle(stream: Any) -> int:
    """Returns the driver's handle of a stream. It accepts None (the default stream), a number, a Stream, a stream of PyTorch,
    CuPy, RMM or Numba, and any object with __cuda_stream__."""
    if stream is None:
        return 0
    if isinstance(stream, Stream):
        return stream.handle
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        told = protocol() if callable(protocol) else protocol
        return _arguments.integer(told[1], "the handle of a stream")
    for name in ("cuda_stream", "ptr", "handle"):
        value = getattr(stream, name, None)
        if value is not None:
            return _arguments.integer(getattr(value, "value", value) or 0, "the handle of a stream")
    try:
        return _arguments.integer(stream, "the handle of a stream")
    except TypeError:
        raise TypeError(f"not a stream: {stream!r} ({type(stream).__name__})") from None


class Stream(_handle.ProcessObject):
    """A stream that the facade owns, for programs without a CUDA runtime, mostly on simulated devices."""

    __slots__ = ("facade", "place", "handle")

    def __init__(self, facade: "Facade", place: Place, handle: int) -> None:
        self.facade = facade
        self.place = place
        self.handle = handle

    def __cuda_stream__(self) -> "tuple[int, int]":
        return 0, self.handle

    def synchronize(self) -> None:
        """Waits on the host for all work of the stream."""
        check(library().strata_stream_synchronize(self.facade.handle, self.place.code, self.handle))

    def wait(self, other: Any) -> None:
        """Orders later work of this stream after all work submitted to `other` so far. If one of the two is being captured, both are
        captured from then on."""
        check(library().strata_stream_wait(self.facade.handle, self.place.code, self.handle, stream_handle(other)))

    def work(self, microseconds: Real, *blocks: "Block") -> None:
        """Keeps the stream busy, as a kernel that uses the blocks would. It works only on simulated devices."""
        duration, refs = _arguments.nanoseconds(microseconds, "microseconds"), block_refs(blocks)
        check(library().strata_stream_work(self.facade.handle, self.place.code, self.handle, duration, refs, len(refs)))

    def destroy(self) -> None:
        """Forgets the stream, then destroys it. Blocks that it owns stay valid."""
        check(library().strata_stream_forget(self.facade.handle, self.place.code, self.handle))
        check(library().strata_stream_destroy(self.facade.handle, self.place.code, self.handle))


def block_refs(blocks: "tuple[Block, ...]") -> Any:
    """Returns an array of the blocks' refs in the library."""
    return (ctypes.c_uint64 * len(blocks))(*(_arguments.ref(block, f"blocks[{i}]") for i, block in enumerate(blocks)))
