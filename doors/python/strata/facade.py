"""Facades. include/strata/strata.h is the manual; names and rules are the same here."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, SupportsIndex, Union

from . import _abi, _arguments, _handle
from ._arguments import PathLike, Real
from ._library import library
from .allocator import Allocator, allocate_options
from .block import Block, Leak, leak_of
from .caches import Caches
from .errors import BusyError, StrataError, check, check_files
from .figures import Row, Statistics, place_report
from .graphs import Graphs
from .places import Place, PlaceLike, gpu
from .sharing import Sharing
from .stream import Stream, block_refs, stream_handle

_CLOSE_MODES = ("busy", "wait", "force")  # in the order of their numbers

StrategyLike = Union[str, "os.PathLike[str]", None]


class Facade(Caches, Graphs, Sharing):
    """The object that strata.open() returns. Any thread may call every method, except close() and change_strategy().

    A facade belongs to its process. It cannot be pickled or copied, and every call in a forked child is an error. If an open facade
    is collected, it warns (ResourceWarning) and closes itself by force. Blocks, streams and allocators keep their facade alive.
    """

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self._open = True
        self._process = os.getpid()
        # The library may call these functions as long as the facade is open.
        self._callbacks: List[Any] = []

    # ---- open and close

    def close(self, mode: str = "wait") -> List[Leak]:
        """Closes the facade. The modes "busy" and "wait" raise BusyError if a block is live, and `leaks` of the error has the
        blocks. The mode "force" releases everything and returns the blocks that were live."""
        number = _arguments.choice(mode, "mode", _CLOSE_MODES)
        leaks: List[Leak] = []

        def leaked(leak: Any, _: Any) -> None:
            leaks.append(leak_of(leak.contents))

        try:
            check(library().strata_close(self.handle, number, _abi.leak_fn(leaked), None))
        except BusyError as error:
            error.leaks = leaks
            raise
        except StrataError as error:
            # With these statuses the facade is closed although the call failed. With E_IO, a layer could not write its file.
            self._open = self._open and error.status not in ("E_IO", "E_HOST_MEMORY", "E_STALE")
            raise
        self._open = False
        return leaks

    def __del__(self) -> None:
        # At the end of the process and in a forked child the library releases nothing, so no warning is needed.
        if not getattr(self, "_open", False) or sys.is_finalizing() or _handle.forked(self._process):
            return
        name = repr(self)
        try:
            leaks = self.close("force")
            live = f", with {len(leaks)} live blocks" if leaks else ""
        except BusyError as error:
            # A graph still uses its memory, or this runs within a callback, where no facade can be closed.
            _unclosed.append(self)
            live = f", which cannot be closed yet: {error}"
        except StrataError:
            return
        warnings.warn(f"unclosed facade {name}{live}; call close(), or use a with statement", ResourceWarning, 2, self)

    @property
    def closed(self) -> bool:
        """True if the facade was closed."""
        return not self._open

    def __enter__(self) -> "Facade":
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        if not self.closed:
            self.close("force" if failed else "wait")

    def __repr__(self) -> str:
        return f"<strata.Facade 0x{self.handle:x} {'closed' if self.closed else 'open'}>"

    def change_strategy(
        self,
        strategy: StrategyLike = None,
        *,
        text: Optional[str] = None,
        set: Sequence[str] = (),
        devices: Optional[str] = None,
        ignore_environment: bool = False,
        check_stream_ids: bool = False,
        allow_code: bool = False,
        check_captures: bool = False,
    ) -> None:
        """Replaces the strategy while no block is live. The arguments are those of strata.open()."""
        flags = (ignore_environment, check_stream_ids, allow_code, check_captures)
        options = open_options(strategy, text, set, devices, flags)
        check_files(library().strata_change_strategy(self.handle, ctypes.byref(options.struct)), *options.files)

    # ---- requests

    def allocate(
        self,
        size: SupportsIndex,
        *,
        place: PlaceLike = gpu(0),
        stream: Any = None,
        alignment: SupportsIndex = 0,
        zero: bool = False,
        grow: bool = True,
        retry: bool = True,
        report: bool = True,
        pool: SupportsIndex = 0,
        tag: Optional[str] = None,
        freed_before: SupportsIndex = 0,
    ) -> Block:
        """Serves `size` bytes in `place` for `stream`.

        Args:
            stream: the owner, or in pinned and host places the first borrower. None is the default stream.
            alignment: a power of two, or 0 for 256 bytes.
            zero: if True, the block is filled with zeros, in the order of `stream`.
            grow: if False, only cached memory may be served.
            retry: if False, the request fails at the first lack of memory.
            report: if False, the text of an OutOfMemoryError has only one line.
            pool: a number of pool(), or 0 for the thread's current pool.
            tag: a label for reports.
            freed_before: for layers that count frees (next_count()). Memory that was freed up to this count may be served.

        Raises:
            OutOfMemoryError: the text has the cause, and the remedies.
        """
        told = allocate_options(
            size,
            alignment=alignment,
            zero=zero,
            grow=grow,
            retry=retry,
            report=report,
            pool=pool,
            tag=tag,
            freed_before=freed_before,
        )
        block = _abi.Block()
        code = Place.of(place).code
        check(library().strata_allocate_with(self.handle, code, stream_handle(stream), ctypes.byref(told), ctypes.byref(block)))
        return Block(self, block)

    def allocator(self, place: PlaceLike = gpu(0), stream: Any = None, pool: SupportsIndex = 0) -> Allocator:
        """Returns one object for a place, a stream and a pool, for components that take an allocator. `pool` is as in
        allocate()."""
        told, code, number = _abi.Allocator(), Place.of(place).code, _arguments.integer(pool, "pool")
        check(library().strata_allocator_get(self.handle, code, stream_handle(stream), number, ctypes.byref(told)))
        return Allocator(self, told)

    def block_of(self, address: SupportsIndex) -> Block:
        """Returns the live block that begins at an address."""
        return self._found("block_of", address)

    def block_around(self, address: SupportsIndex) -> Block:
        """Returns the live block that contains an address."""
        return self._found("base_pointer", address)

    def _found(self, function: str, address: SupportsIndex) -> Block:
        block, number = _abi.Block(), _arguments.integer(address, "address")
        check(getattr(library(), "strata_" + function)(self.handle, number, ctypes.byref(block)))
        return Block(self, block)

    def free(self, address: SupportsIndex) -> None:
        """Frees the block that begins at an address. 0, the address of a block of 0 bytes, is ignored."""
        check(library().strata_free_pointer(self.handle, _arguments.integer(address, "address")))

    def next_count(self, place: PlaceLike = gpu(0)) -> int:
        """Returns the next count, for layers that count frees (`timestamps`). Earlier frees have smaller counts, and later
        frees have larger ones."""
        count = ctypes.c_uint64()
        check(library().strata_next_count(self.handle, Place.of(place).code, ctypes.byref(count)))
        return count.value

    def set_safe_frontier(self, count: SupportsIndex, place: PlaceLike = gpu(0)) -> None:
        """Declares the work up to this count complete. Memory that was freed at smaller counts may then serve any stream."""
        check(library().strata_set_safe_frontier(self.handle, Place.of(place).code, _arguments.integer(count, "count")))

    # ---- streams and pools

    def stream(self, place: PlaceLike = gpu(0), *, name: Optional[str] = None, priority: SupportsIndex = 0) -> Stream:
        """Creates a stream that belongs to the facade. `name`, if given, is its name for `streams:` of the strategy."""
        handle, where = ctypes.c_void_p(), Place.of(place)
        named, order = _arguments.text_or_none(name, "name"), _arguments.signed(priority, "priority")
        check(library().strata_stream_create(self.handle, where.code, order, ctypes.byref(handle)))
        made = Stream(self, where, handle.value or 0)
        try:
            if named is not None:
                check(library().strata_stream_name(self.handle, where.code, made.handle, named))
        except StrataError:
            library().strata_stream_destroy(self.handle, where.code, made.handle)
            raise
        return made

    def name_stream(self, stream: Any, name: str, place: PlaceLike = gpu(0)) -> None:
        """Names a stream. It must be called before the first request of the stream in the place."""
        named = _arguments.text(name, "name")
        check(library().strata_stream_name(self.handle, Place.of(place).code, stream_handle(stream), named))

    def same_stream(self, a: Any, b: Any, place: PlaceLike = gpu(0)) -> bool:
        """Returns True if one stack serves both streams."""
        same = ctypes.c_bool()
        handles = stream_handle(a), stream_handle(b)
        check(library().strata_same_stream(self.handle, Place.of(place).code, *handles, ctypes.byref(same)))
        return same.value

    def set_default_stream(self, stream: Any, place: PlaceLike = gpu(0)) -> None:
        """Makes `stream` the default stream (None) of the place. It can be set once. The stream must live as long as the facade."""
        check(library().strata_set_default_stream(self.handle, Place.of(place).code, stream_handle(stream)))

    def forget_stream(self, stream: Any, place: PlaceLike = gpu(0)) -> None:
        """Forgets a stream. The program must call this before it destroys its own stream, once for each place that used it."""
        check(library().strata_stream_forget(self.handle, Place.of(place).code, stream_handle(stream)))

    def note_work(self, stream: Any, microseconds: Real, *blocks: Block, place: PlaceLike = gpu(0)) -> None:
        """Records in the layer `trace` a kernel that another library launched, with its measured duration. It has no other
        effect."""
        duration, refs = _arguments.nanoseconds(microseconds, "microseconds"), block_refs(blocks)
        where = Place.of(place).code
        check(library().strata_note_work(self.handle, where, stream_handle(stream), duration, refs, len(refs)))

    def note_wait(self, stream: Any, other: Any, place: PlaceLike = gpu(0)) -> None:
        """Records in the layer `trace` that later work of `stream` follows all work that was submitted to `other` so far."""
        check(library().strata_note_wait(self.handle, Place.of(place).code, stream_handle(stream), stream_handle(other)))

    def note_sync(self, stream: Any = ..., place: PlaceLike = gpu(0)) -> None:
        """Records in the layer `trace` that the host has waited for a stream, or without `stream` for the whole device."""
        where = Place.of(place).code
        if stream is ...:
            check(library().strata_note_device_sync(self.handle, where))
        else:
            check(library().strata_note_sync(self.handle, where, stream_handle(stream)))

    def pool(self, name: str) -> int:
        """Returns the number of the pool that is named `name` in the strategy."""
        number, named = ctypes.c_uint64(), _arguments.text(name, "name")
        check(library().strata_pool(self.handle, named, ctypes.byref(number)))
        return number.value

    def in_pool(self, pool: SupportsIndex, place: PlaceLike = gpu(0)) -> "_InPool":
        """Serves the thread's requests in the place from the pool during `with facade.in_pool(number): ...`."""
        return _InPool(self, _arguments.integer(pool, "pool"), Place.of(place))

    def current_pool(self, place: PlaceLike = gpu(0)) -> int:
        """Returns the thread's current pool in a place, or POOL_ORDINARY if it has none."""
        number = ctypes.c_uint64()
        check(library().strata_pool_current(self.handle, Place.of(place).code, ctypes.byref(number)))
        return number.value

    # ---- caches

    def release(self, place: PlaceLike = gpu(0)) -> int:
        """Releases every idle chunk of a place to the device. Returns the number of bytes released."""
        released = ctypes.c_uint64()
        check(library().strata_release(self.handle, Place.of(place).code, ctypes.byref(released)))
        return released.value

    def trim(self, keep: SupportsIndex, place: PlaceLike = gpu(0)) -> int:
        """Releases idle chunks until at most `keep` idle bytes are left. Returns the number of bytes released."""
        released, bound = ctypes.c_uint64(), _arguments.integer(keep, "keep")
        check(library().strata_trim(self.handle, Place.of(place).code, bound, ctypes.byref(released)))
        return released.value

    def mem_info(self, place: PlaceLike = gpu(0)) -> Dict[str, int]:
        """Returns bytes: `free` and `total` as the device reports them, `cached` (reserved and not allocated) and `limit`."""
        info = _abi.MemInfo(ctypes.sizeof(_abi.MemInfo))
        check(library().strata_mem_info(self.handle, Place.of(place).code, ctypes.byref(info)))
        return {field[0]: getattr(info, field[0]) for field in _abi.MemInfo._fields_[1:]}

    def set_limit(self, limit: Optional[SupportsIndex], place: PlaceLike = gpu(0)) -> None:
        """Limits the bytes that may be reserved in a place. None removes the limit."""
        bound = _abi.UNLIMITED if limit is None else _arguments.integer(limit, "limit")
        check(library().strata_set_limit(self.handle, Place.of(place).code, bound))

    # ---- figures

    def statistics(self, place: PlaceLike = gpu(0), *, stream: Any = ..., pool: Optional[SupportsIndex] = None) -> Statistics:
        """Returns the statistics of a place: of all its stacks, of the stack of one stream, or of a pool."""
        told = _abi.Statistics(ctypes.sizeof(_abi.Statistics))
        code = Place.of(place).code
        if pool is not None:
            if stream is not ...:
                raise TypeError("give a stream or a pool, not both")
            check(library().strata_statistics_pool(self.handle, code, _arguments.integer(pool, "pool"), ctypes.byref(told)))
        elif stream is ...:
            check(library().strata_statistics_all(self.handle, code, ctypes.byref(told)))
        else:
            check(library().strata_statistics(self.handle, code, stream_handle(stream), ctypes.byref(told)))
        return Statistics.of(told)

    def all_statistics(self) -> Dict[str, Any]:
        """Returns the statistics of every place, stream, pool and layer, as strata_statistics_json() writes them."""
        return dict(json.loads(self._text("statistics_json")))

    def prometheus(self) -> str:
        """Returns the statistics in the text format of Prometheus."""
        return self._text("statistics_prometheus")

    def reset_peaks(self, place: PlaceLike = gpu(0)) -> None:
        """Sets every peak of a place to its current value."""
        check(library().strata_reset_peaks(self.handle, Place.of(place).code))

    def explain(self) -> str:
        """Returns each stack as built, with the origin of each value and the instances that are shared."""
        return self._text("explain")

    def chunks(self, place: PlaceLike = gpu(0)) -> str:
        """Returns the chunks of a place and their blocks, as text."""
        return self._text("chunks_text", Place.of(place).code)

    def snapshot(self, place: PlaceLike = gpu(0)) -> List[Row]:
        """Returns every block of a place in the order of addresses, all at the same moment."""
        rows: List[Row] = []

        def add(row: Any, _: Any) -> None:
            rows.append(Row.of(row.contents))

        check(library().strata_snapshot(self.handle, Place.of(place).code, _abi.snapshot_fn(add), None))
        return rows

    def report(self, *places: PlaceLike) -> str:
        """Returns the statistics and chunks of places as readable text. Without places, it covers every open place that was
        used."""
        chosen = [Place.of(place) for place in places]
        if not chosen:
            told = ((Place.of(entry["place"]), entry["total"]) for entry in self.all_statistics()["places"])
            chosen = [place for place, total in told if total["allocations"]]
        return "\n".join(place_report(str(place), self.statistics(place), self.chunks(place)) for place in chosen)

    def validate(self) -> None:
        """Checks every structure of the facade. Raises StrataError (E_CORRUPT) with the fault in its text."""
        check(library().strata_validate(self.handle))

    # ---- out of memory, notes

    def on_out_of_memory(self, observer: Callable[[Place, int, str, str], None]) -> int:
        """Adds an observer of out-of-memory errors, and returns a number for remove_callback().

        `observer(place, size, cause, report)` is called for every request that fails for lack of memory. Exceptions of the observer
        are printed and otherwise ignored.
        """
        _arguments.function(observer, "observer")

        def called(event: Any, _: Any) -> None:
            told = event.contents
            cause = library().strata_cause_name(told.cause).decode()
            observer(Place.of_code(told.place), told.size, cause, (told.text or b"").decode("utf-8", "replace"))

        return self._added("out_of_memory_observer", _abi.out_of_memory_fn(called))

    def on_free_memory(self, callback: Callable[[Place, int], int]) -> int:
        """Adds a callback that frees the program's own memory, and returns a number for remove_callback(). `callback(place, size)`
        must return the number of bytes that it freed."""
        _arguments.function(callback, "callback")

        def called(place: int, size: int, _: Any) -> int:
            return _arguments.integer(callback(Place.of_code(place), size) or 0, "the result of the callback")

        return self._added("free_memory_callback", _abi.free_memory_fn(called))

    def _added(self, kind: str, callback: Any) -> int:
        number = ctypes.c_uint32()
        check(getattr(library(), "strata_add_" + kind)(self.handle, callback, None, ctypes.byref(number)))
        self._callbacks.append(callback)
        return number.value

    def remove_callback(self, number: SupportsIndex) -> None:
        """Removes a callback or an observer. Requests that begin after the return do not call it."""
        check(library().strata_remove_callback(self.handle, _arguments.integer(number, "number", 32)))

    def step(self) -> None:
        """Ends a step of the program. Reports count the steps."""
        check(library().strata_step(self.handle))

    def annotate(self, operator: Optional[str]) -> None:
        """Assigns the thread's requests to this operator until the next call. None assigns them to no operator."""
        check(library().strata_annotate(self.handle, _arguments.text_or_none(operator, "operator")))


# Facades that could not be closed when they were collected. open() closes them.
_unclosed: List[Facade] = []


def _close_the_unclosed() -> None:
    for _ in range(len(_unclosed)):
        try:
            facade = _unclosed.pop(0)
            facade.close("force")
        except IndexError:
            return  # another thread was faster
        except BusyError:
            _unclosed.append(facade)
        except StrataError:
            pass


class _InPool:
    def __init__(self, facade: Facade, pool: int, place: Place) -> None:
        self.facade, self.number, self.place = facade, pool, place

    def __enter__(self) -> None:
        check(library().strata_pool_begin(self.facade.handle, self.place.code, self.number))

    def __exit__(self, *_: object) -> None:
        check(library().strata_pool_end(self.facade.handle, self.place.code))


#: The flags of strata.open(), in the order of its parameters.
_OPEN_FLAGS = (
    ("ignore_environment", _abi.OPEN_IGNORE_ENVIRONMENT),
    ("check_stream_ids", _abi.OPEN_CHECK_STREAM_IDS),
    ("allow_code", _abi.OPEN_ALLOW_CODE),
    ("check_captures", _abi.OPEN_CHECK_CAPTURES),
)


class open_options:
    """The options struct of strata_open(), with the texts to which it points and the files that it names."""

    def __init__(
        self,
        strategy: StrategyLike,
        text: Optional[str],
        set: Sequence[str],
        devices: Optional[str],
        flags: Sequence[bool],
    ) -> None:
        if strategy is not None and text is not None:
            raise TypeError("give the name of a strategy or its text, not both")
        named = None if strategy is None else _arguments.path(strategy, "strategy")
        is_file = named is not None and (isinstance(strategy, os.PathLike) or Path(os.fsdecode(named)).suffix in (".yaml", ".yml"))
        settings = _arguments.texts(set, "set")
        profile = (devices or "").partition(":")[2] if devices is None or isinstance(devices, str) else ""
        self.files = (named if is_file else None, profile if profile.endswith((".yaml", ".yml")) else None)
        self.struct = _abi.OpenOptions(
            struct_size=ctypes.sizeof(_abi.OpenOptions),
            preset=None if is_file else named,
            file=named if is_file else None,
            text=_arguments.text_or_none(text, "text"),
            set=(ctypes.c_char_p * len(settings))(*settings),
            set_count=len(settings),
            devices=_arguments.text_or_none(devices, "devices"),
            flags=sum(bit for (name, bit), given in zip(_OPEN_FLAGS, flags) if _arguments.flag(given, name)),
        )


def open(
    strategy: StrategyLike = None,
    *,
    text: Optional[str] = None,
    set: Sequence[str] = (),
    devices: Optional[str] = None,
    ignore_environment: bool = False,
    check_stream_ids: bool = False,
    allow_code: bool = False,
    check_captures: bool = False,
) -> Facade:
    """Opens a facade.

    Args:
        strategy: a preset's name ("strata", "pytorch", "import:pytorch"), or a file, given as a path object or a name that ends in
            .yaml or .yml. The default is STRATA_STRATEGY of the environment, else the preset "strata".
        text: the YAML of a strategy, instead of `strategy`.
        set: options as ["auto_growth.chunk_size=32MiB"].
        devices: "gpu", "gpu:0", "sim", "sim:a100", ... The default is the choice of the strategy. A simulated device is used only
            if it is requested.
        ignore_environment, check_stream_ids, allow_code, check_captures: the flags STRATA_OPEN_*.

    Raises:
        StrategyError: the strategy is wrong. The text has file:line:column.
        MissingFileError: the file does not exist. The error is a StrategyError and a FileNotFoundError.
        DeviceError: the device does not exist.
    """
    flags = (ignore_environment, check_stream_ids, allow_code, check_captures)
    options = open_options(strategy, text, set, devices, flags)
    _close_the_unclosed()
    handle = ctypes.c_uint64()
    check_files(library().strata_open(ctypes.byref(options.struct), ctypes.byref(handle)), *options.files)
    return Facade(handle.value)


def names(function: str) -> Iterator[str]:
    """Yields the names that strata_strategy_name() or strata_layer_name() enumerate."""
    index = 0
    while True:
        name = getattr(library(), function)(index)
        if name is None:
            return
        yield name.decode()
        index += 1
