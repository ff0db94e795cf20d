"""Captured graphs: their memory pools, saved states of a pool, and captures for programs without another runtime.

    stream = s.stream()
    with s.begin_graph_pool(stream) as pool:    # requests of the stream go to the pool
        with s.capture(stream) as graph:
            block = s.allocate(1 << 20, stream=stream)
            stream.work(100, block)
    graph.launch(stream)
    graph.destroy()
    block.free()
    pool.remove()                               # the program releases the pool

docs/graphs.md has the rules.
"""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, Callable, List, NamedTuple, Optional, SupportsIndex

from . import _abi, _arguments, _handle
from ._library import library
from .block import Block
from .errors import StrataError, check
from .places import Place, PlaceLike, gpu
from .stream import stream_handle

if TYPE_CHECKING:
    from .facade import Facade


class GraphPoolInfo(NamedTuple):
    """The result of strata_graph_pool_describe()."""

    pool: int
    begins: int
    graphs: int
    live_allocations: int
    allocated_bytes: int
    reserved_bytes: int
    outside_blocks: int
    begun: bool


class Restored(NamedTuple):
    """The changes that Checkpoint.restore() made: the blocks that it freed, and the blocks that are live again with new refs."""

    freed: List[Block]
    live: List[Block]


class GraphPool(_handle.ProcessObject):
    """A pool of memory for captured graphs. A `with` statement calls end(). remove() releases the program's claim on the pool."""

    __slots__ = ("facade", "place", "number")

    def __init__(self, facade: "Facade", place: Place, number: int) -> None:
        self.facade = facade
        self.place = place
        self.number = number

    def end(self) -> None:
        """Ends the redirection: requests are routed as before begin_graph_pool()."""
        check(library().strata_graph_pool_end(self.facade.handle, self.place.code, self.number))

    def remove(self) -> None:
        """Undoes one begin. The pool ends once no graph holds it and its last block was freed."""
        check(library().strata_graph_pool_remove(self.facade.handle, self.place.code, self.number))

    def describe(self) -> GraphPoolInfo:
        """Returns the number of holders of the pool, and its memory."""
        told = _abi.GraphPoolInfo(ctypes.sizeof(_abi.GraphPoolInfo))
        check(library().strata_graph_pool_describe(self.facade.handle, self.place.code, self.number, ctypes.byref(told)))
        return GraphPoolInfo(*(getattr(told, name) for name in GraphPoolInfo._fields))

    def checkpoint(self) -> "Checkpoint":
        """Saves the live blocks of the pool. Checkpoint.restore() restores them later."""
        handle = ctypes.c_void_p()
        check(library().strata_graph_pool_checkpoint(self.facade.handle, self.place.code, self.number, ctypes.byref(handle)))
        return Checkpoint(self, handle.value or 0)

    def __enter__(self) -> "GraphPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def __repr__(self) -> str:
        return f"<strata.GraphPool {self.number} of {self.place}>"


class Checkpoint(_handle.ProcessObject):
    """The saved live blocks of a graph pool. It keeps neither the blocks nor the pool alive, and ends when it is collected."""

    __slots__ = ("pool", "handle", "_process")

    def __init__(self, pool: GraphPool, handle: int) -> None:
        self.pool = pool
        self.handle = handle
        self._process = os.getpid()

    def restore(self) -> Restored:
        """Frees the blocks that were not live at the checkpoint, and makes the blocks live again that were live at it."""
        facade = self.pool.facade
        restored = Restored([], [])

        def changed(block: Any, live: bool, _: Any) -> None:
            (restored.live if live else restored.freed).append(Block(facade, block.contents))

        call = library().strata_graph_pool_restore
        check(call(facade.handle, self.pool.place.code, self.handle or None, _abi.restored_fn(changed), None))
        return restored

    def drop(self) -> None:
        """Ends the checkpoint. A second call does nothing."""
        handle, self.handle = self.handle, 0
        library().strata_graph_checkpoint_drop(handle or None)

    def __del__(self) -> None:
        if getattr(self, "handle", 0) and not _handle.forked(self._process):
            self.drop()


class Graph(_handle.ProcessObject):
    """A captured graph, from Facade.capture()."""

    __slots__ = ("facade", "place", "handle")

    def __init__(self, facade: "Facade", place: Place, handle: int = 0) -> None:
        self.facade = facade
        self.place = place
        self.handle = handle

    def launch(self, stream: Any) -> None:
        """Launches the graph once, in stream order."""
        check(library().strata_graph_launch(self.facade.handle, self.place.code, self.handle or None, stream_handle(stream)))

    def destroy(self) -> None:
        """Ends the graph."""
        check(library().strata_graph_destroy(self.facade.handle, self.place.code, self.handle or None))


class Capture(_handle.ProcessObject):
    """The context manager of Facade.capture(). Its graph can be launched after the end of the `with` statement."""

    def __init__(self, graph: Graph, stream: int) -> None:
        self.graph = graph
        self._stream = stream

    def __enter__(self) -> Graph:
        check(library().strata_capture_begin(self.graph.facade.handle, self.graph.place.code, self._stream))
        return self.graph

    def __exit__(self, failed: object, *_: object) -> None:
        handle = ctypes.c_void_p()
        graph = self.graph
        try:
            check(library().strata_capture_end(graph.facade.handle, graph.place.code, self._stream, ctypes.byref(handle)))
        except StrataError:
            if not failed:
                raise
            return  # the program's own exception is more useful
        graph.handle = handle.value or 0
        if failed:
            graph.destroy()


class Graphs(_handle.Handle):
    """The functions of a facade for captured graphs."""

    _callbacks: List[Any]

    def begin_graph_pool(
        self,
        stream: Any = None,
        place: PlaceLike = gpu(0),
        *,
        pool: SupportsIndex = 0,
        filter: Optional[Callable[[int], bool]] = None,
    ) -> GraphPool:
        """Serves requests of a stream in a place from a graph pool, until GraphPool.end() or the end of a `with` statement.

        Args:
            pool: the number of an existing pool, or 0 for a new pool.
            filter: selects streams by their handles, instead of `stream`. Any thread may call it, and it must not call the facade.
        """
        where, number = Place.of(place), ctypes.c_uint64(_arguments.integer(pool, "pool"))
        if filter is None:
            check(library().strata_graph_pool_begin(self.handle, where.code, stream_handle(stream), ctypes.byref(number)))
        elif stream is not None:
            raise TypeError("give a stream or a filter, not both")
        else:
            chosen = _arguments.function(filter, "filter")

            def called(handle: Optional[int], _: Any) -> bool:
                return bool(chosen(handle or 0))

            function = _abi.graph_filter_fn(called)
            check(library().strata_graph_pool_begin_filtered(self.handle, where.code, function, None, ctypes.byref(number)))
            # Another thread may still call it shortly after the end.
            self._callbacks.append(function)
        return GraphPool(self, where, number.value)  # type: ignore[arg-type]

    def capture(self, stream: Any, place: PlaceLike = gpu(0)) -> Capture:
        """Captures the work of the stream into a Graph instead of running it, during `with s.capture(stream) as graph: ...`."""
        return Capture(Graph(self, Place.of(place)), stream_handle(stream))  # type: ignore[arg-type]

    def graph_pools(self, place: PlaceLike = gpu(0)) -> List[GraphPool]:
        """Returns the pools of a place that have not ended, the oldest first."""
        where, count = Place.of(place), ctypes.c_size_t(0)
        while True:
            room = count.value
            numbers = (ctypes.c_uint64 * room)()
            check(library().strata_graph_pools(self.handle, where.code, numbers, room, ctypes.byref(count)))
            if count.value <= room:
                return [GraphPool(self, where, numbers[i]) for i in range(count.value)]  # type: ignore[arg-type]
