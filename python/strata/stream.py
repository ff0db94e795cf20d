"""Streams: those of other libraries by their handles, and a facade's own."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from ._library import library
from .errors import check
from .places import Place

if TYPE_CHECKING:
    from .block import Block
    from .facade import Facade


def stream_handle(stream: Any) -> int:
    """The driver's handle of a stream: of None (the default stream), of a number, of a Stream, of PyTorch's, CuPy's, RMM's or
    Numba's streams, and of anything with __cuda_stream__."""
    if stream is None:
        return 0
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        told = protocol() if callable(protocol) else protocol
        return int(told[1])
    for name in ("cuda_stream", "ptr", "handle"):
        value = getattr(stream, name, None)
        if value is not None:
            return int(getattr(value, "value", value) or 0)
    raise TypeError(f"no stream: {stream!r}")


class Stream:
    """A stream of the facade's own, for programs without a runtime, mostly on simulated devices."""

    __slots__ = ("facade", "place", "handle")

    def __init__(self, facade: "Facade", place: Place, handle: int) -> None:
        self.facade = facade
        self.place = place
        self.handle = handle

    def __cuda_stream__(self) -> "tuple[int, int]":
        return 0, self.handle

    def synchronize(self) -> None:
        """The host waits for all work of the stream."""
        check(library().strata_stream_synchronize(self.facade.handle, self.place.code, self.handle))

    def work(self, microseconds: float, *blocks: Block) -> None:
        """Keeps the stream busy, as a kernel that uses the blocks would. On simulated devices alone."""
        refs = (ctypes.c_uint64 * len(blocks))(*(block.ref for block in blocks))
        duration = int(microseconds * 1000)
        check(library().strata_stream_work(self.facade.handle, self.place.code, self.handle, duration, refs, len(blocks)))

    def destroy(self) -> None:
        """Forgets the stream, then destroys it. Blocks that it owns stay valid."""
        check(library().strata_stream_forget(self.facade.handle, self.place.code, self.handle))
        check(library().strata_stream_destroy(self.facade.handle, self.place.code, self.handle))
