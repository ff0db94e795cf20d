"""Strata's statistics under PyTorch's keys, for memory_stats() and memory_snapshot()."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Iterable, List, Sequence, Tuple

from ..figures import Row, Statistics

KINDS = ("allocation", "segment", "active", "inactive_split")
SUMS = ("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes")
POOLS = ("all", "small_pool", "large_pool")
STATES = {"live": "active_allocated", "waiting": "active_awaiting_free", "free": "inactive"}

PoolId = Tuple[int, int]


def stat(current: int = 0, peak: int = 0, allocated: int = 0, freed: int = 0) -> Dict[str, int]:
    return {"current": current, "peak": peak, "allocated": allocated, "freed": freed}


def memory_stats(statistics: Statistics, figures: Sequence[int], begun: Statistics) -> Dict[str, Any]:
    """Returns PyTorch's nested dictionary.

    Args:
        statistics: the statistics of the place.
        figures: eight counts of the door: current, peak, total and freed blocks, then the same four in bytes. These peaks are
            exact. The peak of requested bytes is the place's.
        begun: the statistics at the last reset of the totals.

    Strata has no small and large pools, so their values are 0, as with cudaMallocAsync. Values that Strata does not count are 0
    too: inactive_split, oversize, and the totals of requested, reserved and active bytes.
    """
    s = statistics
    active = s.allocated_bytes + s.deferred_bytes
    freed_chunks = s.growths - s.chunks
    values = {
        "allocation": stat(*figures[0:4]),
        "allocated_bytes": stat(*figures[4:8]),
        "segment": stat(s.chunks, s.chunks, s.growths - begun.growths, freed_chunks - (begun.growths - begun.chunks)),
        "active": stat(figures[0], figures[1], figures[2], figures[3]),
        "active_bytes": stat(active, max(active, figures[5])),
        "reserved_bytes": stat(s.reserved_bytes, s.peak_reserved_bytes),
        "requested_bytes": stat(s.requested_bytes, min(s.peak_requested_bytes, figures[5])),
    }
    result: Dict[str, Any] = {
        name: {pool: values.get(name, stat()) if pool == "all" else stat() for pool in POOLS} for name in KINDS + SUMS
    }
    result["oversize_allocations"] = stat()
    result["oversize_segments"] = stat()
    result["num_alloc_retries"] = s.recoveries - begun.recoveries
    result["num_ooms"] = s.out_of_memory - begun.out_of_memory
    result["num_oom_rejections"] = 0  # Strata rejects no request before it tries
    result["num_sync_all_streams"] = 0
    result["num_device_alloc"] = values["segment"]["allocated"]
    result["num_device_free"] = values["segment"]["freed"]
    result["max_split_size"] = -1
    return result


def segment(rows: List[Row], device: int, pool: PoolId) -> Dict[str, Any]:
    """Returns a chunk in the form of PyTorch's snapshot. `rows` are its blocks, in the order of addresses."""
    sizes = {state: sum(row.size for row in rows if row.state == state) for state in STATES}
    return {
        "device": device,
        "address": rows[0].address,
        "total_size": sum(row.size for row in rows),
        "allocated_size": sizes["live"],
        "active_size": sizes["live"] + sizes["waiting"],
        "requested_size": sum(row.requested for row in rows),
        "stream": rows[0].stream,
        "segment_type": "large",
        "segment_pool_id": pool,
        "is_expandable": False,
        "frames": [],
        "blocks": [
            {"address": row.address, "size": row.size, "requested_size": row.requested, "state": STATES[row.state], "frames": []}
            for row in rows
        ],
    }


def segments(rows: Iterable[Row], device: int, pool_name: Callable[[int], PoolId]) -> List[Dict[str, Any]]:
    """Returns the chunks of a device, in the order of addresses."""
    chunks = itertools.groupby(rows, key=lambda row: (row.chunk, row.pool))
    return [segment(list(blocks), device, pool_name(pool) if pool else (0, 0)) for (_, pool), blocks in chunks]


def snapshot(parts: List[Dict[str, Any]], devices: int) -> Dict[str, Any]:
    """Returns PyTorch's whole snapshot, without history."""
    return {
        "segments": parts,
        "device_traces": [[] for _ in range(devices)],
        "allocator_settings": {},
        "external_annotations": [],
        "host_segments": [],
        "host_traces": [],
    }
