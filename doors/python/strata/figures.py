"""Statistics and snapshots as Python objects, and as readable text."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple

from . import _abi

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class Statistics(Dict[str, int]):
    """The statistics of a place, a stream or a pool, as a dictionary with its keys as attributes."""

    @classmethod
    def of(cls, told: _abi.Statistics) -> "Statistics":
        """Returns a copy of the C struct."""
        return cls((name, getattr(told, name)) for name, _, _ in _abi.STATISTICS)

    def __getattr__(self, name: str) -> int:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Row(NamedTuple):
    """A block of a snapshot. `state` is "free", "live" or "waiting" (freed, but still in use on other streams)."""

    address: int
    size: int
    state: str
    requested: int
    stream: int
    chunk: int
    pool: int
    ref: int

    @classmethod
    def of(cls, row: Any) -> "Row":
        """Returns a copy of the C struct, which is valid only during the callback."""
        state = _abi.SNAPSHOT_STATES[row.state]
        block = row.block
        return cls(block.ptr or 0, block.size, state, row.requested, row.stream or 0, row.chunk, row.pool, block.ref)


def bytes_text(count: int) -> str:
    """Returns "1.50 KiB" for 1536. Below 1024 bytes it returns the exact number of bytes."""
    if count < 1024:
        return f"{count} B"
    value, unit = float(count), 0
    while value >= 1024 and unit + 1 < len(_UNITS):
        value /= 1024
        unit += 1
    return f"{value:.2f} {_UNITS[unit]}"


def place_report(place: str, statistics: Statistics, chunks: str) -> str:
    """Returns the statistics of a place that are not 0, then its chunks."""
    lines = [place]
    for name, unit, _ in _abi.STATISTICS:
        value = statistics[name]
        if value:
            lines.append(f"  {name:<22} {bytes_text(value) if unit == 'bytes' else format(value, ','):>14}")
    lines += ["  " + line for line in chunks.splitlines()]
    return "\n".join(lines)
