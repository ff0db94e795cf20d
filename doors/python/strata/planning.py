"""Offline memory planning: it turns lifetimes into addresses. It needs no facade and no device. docs/planning.md has the planners.

    from strata.planning import Buffer, make

    plan = make([Buffer(0, 3, 4096), Buffer(1, 2, 8192), Buffer(2, 4, 8192)])
    print(plan.offsets, plan.peak, plan.proved)
"""

from __future__ import annotations

import ctypes
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence, SupportsIndex, Tuple

from . import _abi, _arguments
from ._arguments import Real
from ._library import library
from .errors import check as check_status

__all__ = ["Buffer", "Dependencies", "Line", "Plan", "check", "dependencies", "lower_bound", "make", "reuse_lines"]


class Buffer(NamedTuple):
    """A buffer that is live in [lower, upper) of logical time.

    Attributes:
        size: bytes; a buffer of 0 bytes takes no memory.
        alignment: the alignment of its offset, a power of two.
        offset: a fixed offset, or None for any.
        kind: the planner `reuse` passes memory only between buffers of one kind.
        fork, branch: buffers in different branches of one fork (other than 0) never share a byte.
        output: True for an output of the program.
        removed: True if the buffer is not needed and takes no memory.
        held: True if the buffer was live before the first moment.
    """

    lower: SupportsIndex
    upper: SupportsIndex
    size: SupportsIndex
    alignment: SupportsIndex = 1
    offset: Optional[SupportsIndex] = None
    kind: SupportsIndex = 0
    fork: SupportsIndex = 0
    branch: SupportsIndex = 0
    output: bool = False
    removed: bool = False
    held: bool = False


class Plan(NamedTuple):
    """Offsets, one for each buffer, and their peak.

    Attributes:
        proved: True if it is proved that no plan has a lower peak.
        pools: number of pools of the planner `tree`.
        seconds: time that the planner took.
    """

    offsets: List[int]
    peak: int
    lower_bound: int
    proved: bool
    pools: int
    seconds: float


class Line(NamedTuple):
    """An action of `reuse`: "allocate", "reuse" (the buffer takes over the memory of `other`), "free" or "null"."""

    time: int
    effect: str
    buffer: int
    other: int


class Dependencies(NamedTuple):
    """Memory that a plan passes on between buffers. `implicit` counts the pairs in different branches. `found` lists them as
    (earlier, later, bytes)."""

    reuses: int
    bytes: int
    implicit: int
    implicit_bytes: int
    found: List[Tuple[int, int, int]]


def make(
    buffers: Iterable[Sequence[Any]],
    *,
    planner: Optional[str] = None,
    seconds: Real = 0,
    capacity: SupportsIndex = 0,
    pools: str = "intermediates",
    close_gaps: bool = False,
) -> Plan:
    """Chooses the offset of each buffer.

    Args:
        buffers: Buffer objects, or tuples of the fields in their order.
        planner: "auto" (also None), "greedy", "exact", "reuse" or "tree".
        seconds: the time limit. 0 means one second.
        capacity: the search stops at a plan with this peak, but the peak may be higher. 0 means that it does not stop early.
        pools: the pools of `tree`: "intermediates", "none", "outputs" or "combined".
        close_gaps: if True, `reuse` and `tree` run without the known gaps of their peers.
    """
    struct, count = _array(buffers)
    options = _options(planner, seconds, capacity, pools, close_gaps)
    offsets = (ctypes.c_uint64 * max(count, 1))()
    told = _abi.PlanResult(ctypes.sizeof(_abi.PlanResult))
    check_status(library().strata_plan_make(ctypes.byref(options), struct, count, offsets, ctypes.byref(told)))
    return Plan(offsets[:count], told.peak, told.lower_bound, told.proved, told.pools, told.time_ns / 1e9)


def check(buffers: Iterable[Sequence[Any]], offsets: Iterable[SupportsIndex]) -> int:
    """Returns the peak of a plan. Raises StrataError (E_CORRUPT) if the offsets are not a plan, and its text names the buffers."""
    struct, count = _array(buffers)
    peak = ctypes.c_uint64()
    check_status(library().strata_plan_check(struct, count, _offsets(offsets, count), ctypes.byref(peak)))
    return peak.value


def lower_bound(buffers: Iterable[Sequence[Any]]) -> int:
    """Returns the lower bound of the peak of every plan."""
    struct, count = _array(buffers)
    bound = ctypes.c_uint64()
    check_status(library().strata_plan_lower_bound(struct, count, ctypes.byref(bound)))
    return bound.value


def reuse_lines(buffers: Iterable[Sequence[Any]], *, close_gaps: bool = False) -> List[Line]:
    """Returns the actions of the planner `reuse`, in program order."""
    struct, count = _array(buffers)
    options = _options("reuse", 0, 0, "intermediates", close_gaps)
    lines, told = (_abi.PlanLine * max(2 * count, 1))(), ctypes.c_size_t()
    check_status(library().strata_plan_reuse_lines(ctypes.byref(options), struct, count, lines, ctypes.byref(told)))
    return [Line(line.time, _abi.PLAN_EFFECTS[line.effect], line.buffer, line.other) for line in lines[: told.value]]


def dependencies(buffers: Iterable[Sequence[Any]], offsets: Iterable[SupportsIndex]) -> Dependencies:
    """Returns the memory that a plan passes from a buffer to later ones at the same addresses, and the waits between branches that
    this causes."""
    struct, count = _array(buffers)
    found: List[Tuple[int, int, int]] = []

    def called(_: Any, earlier: int, later: int, passed: int) -> None:
        found.append((earlier, later, passed))

    told = _abi.PlanDependencies(ctypes.sizeof(_abi.PlanDependencies))
    function, where = _abi.plan_found_fn(called), _offsets(offsets, count)
    check_status(library().strata_plan_depend(struct, count, where, function, None, ctypes.byref(told)))
    return Dependencies(told.reuses, told.bytes, told.implicit, told.implicit_bytes, found)


def _options(planner: Optional[str], seconds: Real, capacity: SupportsIndex, pools: str, close_gaps: bool) -> _abi.PlanOptions:
    return _abi.PlanOptions(
        ctypes.sizeof(_abi.PlanOptions),
        _arguments.text_or_none(planner, "planner"),
        _arguments.nanoseconds(seconds, "seconds", "seconds"),
        _arguments.integer(capacity, "capacity"),
        _arguments.choice(pools, "pools", _abi.PLAN_POOLS),
        _arguments.flag(close_gaps, "close_gaps"),
    )


def _offsets(offsets: Iterable[SupportsIndex], count: int) -> Any:
    told = [_arguments.integer(offset, f"offsets[{i}]") for i, offset in enumerate(_arguments.items(offsets, "offsets"))]
    if len(told) != count:
        raise ValueError(f"there are {len(told)} offsets for {count} buffers")
    return (ctypes.c_uint64 * max(count, 1))(*told)


def _array(buffers: Iterable[Sequence[Any]]) -> "Tuple[Any, int]":
    rows = [_struct(buffer, f"buffers[{i}]") for i, buffer in enumerate(_arguments.items(buffers, "buffers"))]
    return (_abi.PlanBuffer * max(len(rows), 1))(*rows), len(rows)


def _struct(buffer: Sequence[Any], name: str) -> _abi.PlanBuffer:
    if not isinstance(buffer, (Buffer, tuple, list)):
        raise TypeError(f"{name} must be a Buffer or a tuple (lower, upper, size, ...), not {buffer!r} ({type(buffer).__name__})")
    if not 3 <= len(buffer) <= len(Buffer._fields):
        raise ValueError(f"{name} has {len(buffer)} fields; a Buffer has 3 to {len(Buffer._fields)}")
    row = Buffer(*buffer)
    flags = 0 if row.offset is None else _abi.PLAN_FIXED
    for field, bit in (("output", _abi.PLAN_OUTPUT), ("removed", _abi.PLAN_REMOVED), ("held", _abi.PLAN_HELD)):
        flags |= bit if _arguments.flag(getattr(row, field), f"{name}.{field}") else 0
    numbers = [_arguments.integer(getattr(row, field), f"{name}.{field}") for field in ("lower", "upper", "size", "alignment")]
    numbers.append(0 if row.offset is None else _arguments.integer(row.offset, f"{name}.offset"))
    numbers += [_arguments.integer(getattr(row, field), f"{name}.{field}", 32) for field in ("kind", "fork", "branch")]
    return _abi.PlanBuffer(*numbers, flags)
