"""A facade. include/strata/strata.h is the manual; names and rules are the same here."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Union

from . import _abi
from ._library import library
from .block import Block, Leak, leak_of
from .errors import StrataError, check
from .figures import Row, Statistics, place_report
from .places import Place, PlaceLike, gpu
from .stream import Stream, stream_handle

_CLOSE_MODES = {"busy": _abi.CLOSE_BUSY, "wait": _abi.CLOSE_WAIT, "force": _abi.CLOSE_FORCE}

StrategyLike = Union[str, "os.PathLike[str]", None]


class Facade:
    """What strata.open() gives. Every method may be called from any thread, except close() and change_strategy()."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        # What the library may call as long as the facade is open.
        self._callbacks: List[Any] = []

    # ---- open and close

    def close(self, mode: str = "wait") -> List[Leak]:
        """Closes the facade. `mode`: "busy" and "wait" raise BusyError if a block is live, with the blocks as `leaks` of the
        error; "force" gives everything back and answers what was live."""
        leaks: List[Leak] = []

        def leaked(leak: Any, _: Any) -> None:
            leaks.append(leak_of(leak.contents))

        try:
            check(library().strata_close(self.handle, _CLOSE_MODES[mode], _abi.leak_fn(leaked), None))
        except StrataError as error:
            error.leaks = leaks  # type: ignore[attr-defined]
            raise
        return leaks

    def __enter__(self) -> "Facade":
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        self.close("force" if failed else "wait")

    def change_strategy(self, strategy: StrategyLike = None, **options: Any) -> None:
        """Replaces the strategy while nothing is live; takes what strata.open() takes."""
        with open_options(strategy, **options) as told:
            check(library().strata_change_strategy(self.handle, ctypes.byref(told)))

    # ---- requests

    def allocate(
        self,
        size: int,
        *,
        place: PlaceLike = gpu(0),
        stream: Any = None,
        alignment: int = 0,
        zero: bool = False,
        grow: bool = True,
        retry: bool = True,
        report: bool = True,
        pool: int = 0,
        tag: Optional[str] = None,
    ) -> Block:
        """Serves `size` bytes in `place` for `stream`.

        Args:
            stream: the owner; None is the default stream. In pinned and host places the first borrower.
            alignment: 0 (256 bytes) or a power of two.
            zero: filled with zeros, in the order of `stream`.
            grow: False: from what is cached alone.
            retry: False: fails at the first lack of memory.
            report: False: an OutOfMemoryError has one line.
            pool: a number of pool(); 0: the thread's current one.
            tag: who asks, for reports.

        Raises:
            OutOfMemoryError: its text says why, and what helps.
        """
        flags = (0 if retry else _abi.NO_RETRY) | (0 if grow else _abi.NO_GROW) | (_abi.ZERO if zero else 0)
        flags |= 0 if report else _abi.NO_REPORT
        tagged = None if tag is None else tag.encode()
        told = _abi.AllocateOptions(ctypes.sizeof(_abi.AllocateOptions), size, alignment, flags, pool, tagged, 0)
        block = _abi.Block()
        code = Place.of(place).code
        check(library().strata_allocate_with(self.handle, code, stream_handle(stream), ctypes.byref(told), ctypes.byref(block)))
        return Block(self, block)

    def block_of(self, address: int) -> Block:
        """The live block that begins at an address."""
        return self._found("block_of", address)

    def block_around(self, address: int) -> Block:
        """The live block that contains an address."""
        return self._found("base_pointer", address)

    def _found(self, function: str, address: int) -> Block:
        block = _abi.Block()
        check(getattr(library(), "strata_" + function)(self.handle, address, ctypes.byref(block)))
        return Block(self, block)

    def free(self, address: int) -> None:
        """Frees the block that begins at an address."""
        check(library().strata_free_pointer(self.handle, address))

    # ---- streams and pools

    def stream(self, place: PlaceLike = gpu(0), *, name: Optional[str] = None, priority: int = 0) -> Stream:
        """A new stream of the facade's own, with a name for `streams:` of the strategy if one is given."""
        handle = ctypes.c_void_p()
        where = Place.of(place)
        check(library().strata_stream_create(self.handle, where.code, priority, ctypes.byref(handle)))
        if name is not None:
            self.name_stream(handle.value, name, where)
        return Stream(self, where, handle.value or 0)

    def name_stream(self, stream: Any, name: str, place: PlaceLike = gpu(0)) -> None:
        """Names a stream before its first request in a place."""
        check(library().strata_stream_name(self.handle, Place.of(place).code, stream_handle(stream), name.encode()))

    def forget_stream(self, stream: Any, place: PlaceLike = gpu(0)) -> None:
        """To be called before the program destroys a stream of its own, for each place in which it was used."""
        check(library().strata_stream_forget(self.handle, Place.of(place).code, stream_handle(stream)))

    def note_work(self, stream: Any, microseconds: float, *blocks: Block, place: PlaceLike = gpu(0)) -> None:
        """Tells the layer `trace` of a kernel that was launched by another library, as it was measured. Nothing else happens."""
        if microseconds < 0:
            raise ValueError(f"a kernel takes no {microseconds} us")
        refs = (ctypes.c_uint64 * len(blocks))(*(block.ref for block in blocks))
        duration, where = int(microseconds * 1000), Place.of(place).code
        check(library().strata_note_work(self.handle, where, stream_handle(stream), duration, refs, len(blocks)))

    def note_wait(self, stream: Any, other: Any, place: PlaceLike = gpu(0)) -> None:
        """Tells it that later work of `stream` comes after what `other` has been given so far."""
        check(library().strata_note_wait(self.handle, Place.of(place).code, stream_handle(stream), stream_handle(other)))

    def note_sync(self, stream: Any = ..., place: PlaceLike = gpu(0)) -> None:
        """Tells it that the host has waited for a stream, or without one for the whole device."""
        where = Place.of(place).code
        if stream is ...:
            check(library().strata_note_device_sync(self.handle, where))
        else:
            check(library().strata_note_sync(self.handle, where, stream_handle(stream)))

    def pool(self, name: str) -> int:
        """The number of the pool that the strategy calls `name`."""
        number = ctypes.c_uint64()
        check(library().strata_pool(self.handle, name.encode(), ctypes.byref(number)))
        return number.value

    def in_pool(self, pool: int, place: PlaceLike = gpu(0)) -> "_InPool":
        """`with facade.in_pool(number): ...`: the thread's requests in the place go to the pool."""
        return _InPool(self, pool, Place.of(place))

    # ---- caches

    def release(self, place: PlaceLike = gpu(0)) -> int:
        """Gives every idle chunk of a place back to the device; answers the bytes."""
        released = ctypes.c_uint64()
        check(library().strata_release(self.handle, Place.of(place).code, ctypes.byref(released)))
        return released.value

    def trim(self, keep: int, place: PlaceLike = gpu(0)) -> int:
        """Releases idle chunks until at most `keep` idle bytes are left; answers the bytes."""
        released = ctypes.c_uint64()
        check(library().strata_trim(self.handle, Place.of(place).code, keep, ctypes.byref(released)))
        return released.value

    def mem_info(self, place: PlaceLike = gpu(0)) -> Dict[str, int]:
        """free and total as the device says, cached (reserved and not allocated), limit."""
        info = _abi.MemInfo(ctypes.sizeof(_abi.MemInfo))
        check(library().strata_mem_info(self.handle, Place.of(place).code, ctypes.byref(info)))
        return {field[0]: getattr(info, field[0]) for field in _abi.MemInfo._fields_[1:]}

    def set_limit(self, limit: Optional[int], place: PlaceLike = gpu(0)) -> None:
        """Bounds the bytes that may be reserved in a place; None: no bound."""
        check(library().strata_set_limit(self.handle, Place.of(place).code, _abi.UNLIMITED if limit is None else limit))

    # ---- figures

    def statistics(self, place: PlaceLike = gpu(0), *, stream: Any = ..., pool: Optional[int] = None) -> Statistics:
        """The figures of a place: of all its stacks, of one stream's, or of a pool."""
        told = _abi.Statistics(ctypes.sizeof(_abi.Statistics))
        code = Place.of(place).code
        if pool is not None:
            check(library().strata_statistics_pool(self.handle, code, pool, ctypes.byref(told)))
        elif stream is ...:
            check(library().strata_statistics_all(self.handle, code, ctypes.byref(told)))
        else:
            check(library().strata_statistics(self.handle, code, stream_handle(stream), ctypes.byref(told)))
        return Statistics((name, getattr(told, name)) for name, _, _ in _abi.STATISTICS)

    def all_statistics(self) -> Dict[str, Any]:
        """The figures of every place, stream, pool and layer, as strata_statistics_json() tells them."""
        return dict(json.loads(self._text("statistics_json")))

    def prometheus(self) -> str:
        """The figures in the text format of Prometheus."""
        return self._text("statistics_prometheus")

    def reset_peaks(self, place: PlaceLike = gpu(0)) -> None:
        """Sets every peak of a place to the present value."""
        check(library().strata_reset_peaks(self.handle, Place.of(place).code))

    def explain(self) -> str:
        """Each stack as built: where each value comes from, and which instances are shared."""
        return self._text("explain")

    def chunks(self, place: PlaceLike = gpu(0)) -> str:
        """The chunks of a place and their blocks, as text."""
        return self._text("chunks_text", Place.of(place).code)

    def snapshot(self, place: PlaceLike = gpu(0)) -> List[Row]:
        """Every block of a place in the order of addresses, all as of one moment."""
        rows: List[Row] = []

        def add(row: Any, _: Any) -> None:
            rows.append(Row.of(row.contents))

        check(library().strata_snapshot(self.handle, Place.of(place).code, _abi.snapshot_fn(add), None))
        return rows

    def report(self, *places: PlaceLike) -> str:
        """Figures and chunks of places, for people; without places, of every open one that was used."""
        chosen = [Place.of(place) for place in places]
        if not chosen:
            told = ((Place.of(entry["place"]), entry["total"]) for entry in self.all_statistics()["places"])
            chosen = [place for place, total in told if total["allocations"]]
        return "\n".join(place_report(str(place), self.statistics(place), self.chunks(place)) for place in chosen)

    def validate(self) -> None:
        """Checks every structure of the facade. StrataError (E_CORRUPT): its text says what is wrong."""
        check(library().strata_validate(self.handle))

    def _text(self, function: str, *arguments: Any) -> str:
        """A text of the library, whose length is known only after the call: asked again while it does not fit."""
        call = getattr(library(), "strata_" + function)
        needed = ctypes.c_size_t(4096)
        while True:
            text = ctypes.create_string_buffer(needed.value + 1)
            check(call(self.handle, *arguments, text, len(text), ctypes.byref(needed)))
            if needed.value < len(text):
                return text.value.decode("utf-8", "replace")

    # ---- out of memory, notes

    def on_out_of_memory(self, observer: Callable[[Place, int, str, str], None]) -> int:
        """`observer(place, size, cause, report)` is called for every request that fails for memory at last. Answers a number for
        remove_callback(). What the observer raises is printed and passed over."""

        def called(event: Any, _: Any) -> None:
            told = event.contents
            cause = library().strata_cause_name(told.cause).decode()
            observer(Place.of_code(told.place), told.size, cause, (told.text or b"").decode("utf-8", "replace"))

        return self._added("out_of_memory_observer", _abi.out_of_memory_fn(called))

    def on_free_memory(self, callback: Callable[[Place, int], int]) -> int:
        """`callback(place, size)` is asked to free memory of the program's own; it answers the bytes that it freed."""

        def called(place: int, size: int, _: Any) -> int:
            return int(callback(Place.of_code(place), size) or 0)

        return self._added("free_memory_callback", _abi.free_memory_fn(called))

    def _added(self, kind: str, callback: Any) -> int:
        number = ctypes.c_uint32()
        check(getattr(library(), "strata_add_" + kind)(self.handle, callback, None, ctypes.byref(number)))
        self._callbacks.append(callback)
        return number.value

    def remove_callback(self, number: int) -> None:
        """Requests that begin after the return no longer call it."""
        check(library().strata_remove_callback(self.handle, number))

    def step(self) -> None:
        """A step of the program ends: reports count them."""
        check(library().strata_step(self.handle))

    def load_plan(
        self, path: Union[str, "os.PathLike[str]"], place: PlaceLike = gpu(0), stream: int = 0, branch: Optional[int] = None
    ) -> None:
        """The requests of a stream follow a plan that was made ahead (`strata plan -o`): of one with several branches, `branch`."""
        options = _abi.PlanLoadOptions(struct_size=ctypes.sizeof(_abi.PlanLoadOptions))
        options.one_branch, options.branch = branch is not None, branch or 0
        check(library().strata_plan_load(self.handle, Place.of(place).code, stream, os.fsencode(path), ctypes.byref(options)))

    def annotate(self, operator: Optional[str]) -> None:
        """The thread's requests belong to this operator until the next call; None ends that."""
        check(library().strata_annotate(self.handle, None if operator is None else operator.encode()))


class _InPool:
    def __init__(self, facade: Facade, pool: int, place: Place) -> None:
        self.facade, self.number, self.place = facade, pool, place

    def __enter__(self) -> None:
        check(library().strata_pool_begin(self.facade.handle, self.place.code, self.number))

    def __exit__(self, *_: object) -> None:
        check(library().strata_pool_end(self.facade.handle, self.place.code))


class open_options:
    """The struct that strata_open() takes, as long as the `with` lasts: it holds the texts that the struct points to."""

    def __init__(
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
        if strategy is not None and text is not None:
            raise TypeError("a strategy is named, or its text is given, not both")
        path = isinstance(strategy, os.PathLike) or (strategy is not None and Path(strategy).suffix in (".yaml", ".yml"))
        named = None if strategy is None else os.fsencode(strategy)
        flags = _abi.OPEN_IGNORE_ENVIRONMENT if ignore_environment else 0
        flags |= _abi.OPEN_CHECK_STREAM_IDS if check_stream_ids else 0
        flags |= _abi.OPEN_ALLOW_CODE if allow_code else 0
        flags |= _abi.OPEN_CHECK_CAPTURES if check_captures else 0
        settings = (ctypes.c_char_p * len(set))(*(setting.encode() for setting in set))
        self._told = _abi.OpenOptions(
            struct_size=ctypes.sizeof(_abi.OpenOptions),
            preset=None if path else named,
            file=named if path else None,
            text=None if text is None else text.encode(),
            set=settings,
            set_count=len(set),
            devices=None if devices is None else devices.encode(),
            flags=flags,
        )

    def __enter__(self) -> _abi.OpenOptions:
        return self._told

    def __exit__(self, *_: object) -> None:
        pass


def open(strategy: StrategyLike = None, **options: Any) -> Facade:
    """Opens a facade.

    Args:
        strategy: a preset's name ("strata", "pytorch", "import:pytorch"), or a file: a path object, or a name that ends in .yaml.
            None: STRATA_STRATEGY of the environment, else the preset "strata".
        text: the YAML of a strategy instead.
        set: options as "auto_growth.chunk_size=32MiB".
        devices: "gpu", "gpu:0", "sim", "sim:a100", ...; None: as the strategy says. A simulated device is never chosen unasked.
        ignore_environment, check_stream_ids, allow_code, check_captures: the flags STRATA_OPEN_*.

    Raises:
        StrategyError: the strategy is wrong; the text has file:line:column.
        DeviceError: there is no such device.
    """
    handle = ctypes.c_uint64()
    with open_options(strategy, **options) as told:
        check(library().strata_open(ctypes.byref(told), ctypes.byref(handle)))
    return Facade(handle.value)


def names(function: str) -> Iterator[str]:
    """The names that strata_strategy_name() or strata_layer_name() count through."""
    index = 0
    while True:
        name = getattr(library(), function)(index)
        if name is None:
            return
        yield name.decode()
        index += 1
