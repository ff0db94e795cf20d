"""Cached memory, eviction, and memory that is released to the device temporarily."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, List, NamedTuple, Optional, SupportsIndex

from . import _abi, _arguments, _handle
from ._arguments import PathLike
from ._library import library
from .block import Block, block_of_ref
from .errors import check, check_files
from .places import Place, PlaceLike, gpu
from .stream import stream_handle

#: The number for requests and memory outside pools.
POOL_ORDINARY = _abi.POOL_ORDINARY
#: Every pool of a place, for Facade.pause() and Facade.resume().
POOL_EVERY = _abi.POOL_EVERY


class Cache(NamedTuple):
    """A cache that serves a stream. Two streams have the same `id` if and only if one instance serves both."""

    id: int
    name: str
    layer: str
    used_bytes: int
    idle_bytes: int


class Paused(NamedTuple):
    """The result of a pause or a resume.

    Attributes:
        bytes: bytes that were released or restored.
        kept_bytes: the part of them whose contents were kept.
        rest_bytes: after a pause, bytes that the pools still have of the device; after a resume, bytes that are still paused.
        handles: number of handles that were released or restored.
        copy_ns: nanoseconds of copying the kept bytes.
    """

    bytes: int
    kept_bytes: int
    rest_bytes: int
    handles: int
    copy_ns: int


class PoolTrim(NamedTuple):
    """Bytes of a pool that a trim found and released.

    Attributes:
        idle: idle bytes before.
        released: bytes that the device got back.
        left: idle bytes afterwards.
        pending: freed bytes that the GPU still uses.
    """

    idle: int
    released: int
    left: int
    pending: int


class LayerFigure(NamedTuple):
    """A metric of a layer. `stream` is 0 for a layer that all streams of the place share."""

    layer: str
    type: str
    number: int
    shared: bool
    stream: int
    thread: int
    forgotten: bool
    name: str
    unit: str
    meaning: str
    value: int
    pool: int


class Caches(_handle.Handle):
    """The functions of a facade for its caches."""

    def release_pool(self, pool: SupportsIndex = 0, place: PlaceLike = gpu(0)) -> int:
        """Releases every idle chunk of a pool to the device, even with `keep: true`. Returns the number of bytes released. The
        pool 0 is the thread's current pool, and POOL_ORDINARY is the memory outside pools."""
        released, number = ctypes.c_uint64(), _arguments.integer(pool, "pool")
        check(library().strata_release_pool(self.handle, Place.of(place).code, number, ctypes.byref(released)))
        return released.value

    def trim_pool(self, keep: SupportsIndex = 0, pool: SupportsIndex = 0, place: PlaceLike = gpu(0)) -> PoolTrim:
        """Releases idle chunks of a pool that is in use until at most `keep` idle bytes are left in it. Live blocks stay. The pool
        is as in release_pool()."""
        told, number = _abi.PoolTrim(ctypes.sizeof(_abi.PoolTrim)), _arguments.integer(pool, "pool")
        bound = _arguments.integer(keep, "keep")
        check(library().strata_trim_pool(self.handle, Place.of(place).code, number, bound, ctypes.byref(told)))
        return PoolTrim(told.idle, told.released, told.left, told.pending)

    def cache_below(self, stream: Any = None, place: PlaceLike = gpu(0), index: SupportsIndex = 0) -> Cache:
        """Returns the cache that serves a stream in the thread's current pool. With routers there are several, and `index` selects
        one."""
        told, number = _abi.Cache(ctypes.sizeof(_abi.Cache)), _arguments.integer(index, "index")
        check(library().strata_cache_below(self.handle, Place.of(place).code, stream_handle(stream), number, ctypes.byref(told)))
        return Cache(told.id, told.name.decode(), told.layer.decode(), told.used_bytes, told.idle_bytes)

    def layer_figures(self, place: PlaceLike = gpu(0)) -> List[LayerFigure]:
        """Returns the metrics of every layer of a place, by stream."""
        figures: List[LayerFigure] = []

        def add(figure: Any, _: Any) -> None:
            values: List[Any] = [getattr(figure.contents, name) for name in LayerFigure._fields]
            values = [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values]
            figures.append(LayerFigure(*values)._replace(stream=figure.contents.stream or 0))

        check(library().strata_layer_figures(self.handle, Place.of(place).code, _abi.layer_figure_fn(add), None))
        return figures

    def best_victims(self, size: SupportsIndex, place: PlaceLike = gpu(0)) -> List[Block]:
        """Returns the cheapest set of live blocks to free to get a free run of `size` bytes in one chunk. The list is empty if
        such a run exists already. Raises OutOfMemoryError if no chunk is large enough."""
        wanted, code, count = _arguments.integer(size, "size"), Place.of(place).code, ctypes.c_size_t(0)
        while True:
            room = count.value
            refs = (ctypes.c_uint64 * room)()
            check(library().strata_best_victims(self.handle, code, wanted, refs, room, ctypes.byref(count)))
            if count.value <= room:
                return [block_of_ref(self, refs[i]) for i in range(count.value)]  # type: ignore[arg-type]

    def pause(
        self,
        place: PlaceLike = gpu(0),
        *,
        pool: SupportsIndex = 0,
        contents: str = "drop",
        tag: Optional[str] = None,
        directory: Optional[PathLike] = None,
        staging: SupportsIndex = 0,
    ) -> Paused:
        """Releases the memory of pools to the device until resume(). Blocks keep their addresses, but must not be used until then.

        Args:
            pool: the number of a pool, POOL_ORDINARY, POOL_EVERY, or 0 for the thread's current pool.
            contents: the treatment of the bytes: "drop", "pinned" (kept in pinned memory) or "file" (kept in a file in
                `directory`).
            tag: if given, only handles whose live blocks all have this tag are paused.
            staging: bytes of pinned memory through which a file is written. 0 means 64 MiB.
        """
        kept = _arguments.choice(contents, "contents", _abi.PAUSE_CONTENTS)
        folder = None if directory is None else _arguments.path(directory, "directory")
        told = _abi.PauseOptions(ctypes.sizeof(_abi.PauseOptions), _arguments.integer(pool, "pool"))
        told.tag, told.contents, told.directory = _arguments.text_or_none(tag, "tag"), kept, folder
        told.staging = _arguments.integer(staging, "staging")
        paused = _abi.Paused(ctypes.sizeof(_abi.Paused))
        status = library().strata_pause(self.handle, Place.of(place).code, ctypes.byref(told), ctypes.byref(paused))
        check_files(status, folder)
        return _paused(paused)

    def resume(self, place: PlaceLike = gpu(0), *, pool: SupportsIndex = 0, tag: Optional[str] = None) -> Paused:
        """Restores paused memory at the same addresses, with the kept contents."""
        number, named = _arguments.integer(pool, "pool"), _arguments.text_or_none(tag, "tag")
        paused = _abi.Paused(ctypes.sizeof(_abi.Paused))
        check(library().strata_resume(self.handle, Place.of(place).code, number, named, ctypes.byref(paused)))
        return _paused(paused)


def _paused(told: _abi.Paused) -> Paused:
    return Paused(told.bytes, told.kept_bytes, told.rest_bytes, told.handles, told.copy_ns)
