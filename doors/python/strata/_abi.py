"""The declarations of include/strata/*.h for ctypes: structs, functions and numbers, each once.

The tests compare every line with the headers: sizes and offsets with a C program, and prototypes with the text of the headers.
"""

from __future__ import annotations

import ctypes as c
from typing import Any, Dict, List, Tuple, Type

ABI_VERSION = 1

OPEN_IGNORE_ENVIRONMENT = 1 << 0
OPEN_CHECK_STREAM_IDS = 1 << 1
OPEN_ALLOW_CODE = 1 << 2
OPEN_CHECK_CAPTURES = 1 << 3

CLOSE_BUSY, CLOSE_WAIT, CLOSE_FORCE = 0, 1, 2

NO_RETRY = 1 << 0
NO_GROW = 1 << 1
ZERO = 1 << 2
NO_REPORT = 1 << 3

POOL_ORDINARY = 1
POOL_EVERY = 2**64 - 1
UNLIMITED = 2**64 - 1
SHARE_SEGMENTS = 250

PLAN_FIXED, PLAN_OUTPUT, PLAN_REMOVED, PLAN_HELD = 1, 2, 4, 8
PLAN_BUFFERS = 1 << 24

PLACE_KINDS = ("gpu", "managed", "pinned", "host")
LOG_LEVELS = ("nothing", "error", "warning", "info", "debug")
SNAPSHOT_STATES = ("free", "live", "waiting")
PAUSE_CONTENTS = ("drop", "pinned", "file")
PLAN_POOLS = ("intermediates", "none", "outputs", "combined")
PLAN_EFFECTS = ("allocate", "reuse", "free", "null")

#: STRATA_STATUS_MAP: names without their prefix, by number. 14 is retired and must not be used again.
STATUSES: Dict[int, str] = {
    0: "OK",
    1: "E_INVALID",
    2: "E_NO_MEMORY",
    3: "E_HOST_MEMORY",
    4: "E_STALE",
    5: "E_UNSUPPORTED",
    6: "E_NO_DEVICE",
    7: "E_DEVICE",
    8: "E_DEVICE_LOST",
    9: "E_STRATEGY",
    10: "E_FORMAT",
    11: "E_IO",
    12: "E_BUSY",
    13: "E_NOT_READY",
    15: "E_UNKNOWN_POINTER",
    16: "E_UNKNOWN_STREAM",
    17: "E_FORKED",
    18: "E_CAPTURE",
    19: "E_SHUTDOWN",
    20: "E_CORRUPT",
    21: "E_LIMIT",
}

#: STRATA_STATISTICS_MAP: the field, its unit, and True if it only grows.
STATISTICS: Tuple[Tuple[str, str, bool], ...] = (
    ("requested_bytes", "bytes", False),
    ("allocated_bytes", "bytes", False),
    ("peak_requested_bytes", "bytes", False),
    ("peak_allocated_bytes", "bytes", False),
    ("allocations", "count", True),
    ("frees", "count", True),
    ("cache_hits", "count", True),
    ("reserved_bytes", "bytes", False),
    ("deferred_bytes", "bytes", False),
    ("peak_reserved_bytes", "bytes", False),
    ("live_allocations", "count", False),
    ("growths", "count", True),
    ("chunks", "count", False),
    ("borrows", "count", True),
    ("deferred_frees", "count", True),
    ("recoveries", "count", True),
    ("out_of_memory", "count", True),
    ("host_waits", "count", True),
    ("quarantined_bytes", "bytes", False),
    ("borrows_waited", "count", True),
    ("paused_bytes", "bytes", False),
    ("sent_blocks", "count", False),
    ("sent_bytes", "bytes", False),
    ("limbo_bytes", "bytes", False),
)

facade_t = c.c_uint64
ref_t = c.c_uint64
place_t = c.c_uint32
stream_t = c.c_void_p


class Error(c.Structure):
    _fields_ = [
        ("status", c.c_int),
        ("device_code", c.c_int64),
        ("line", c.c_uint32),
        ("column", c.c_uint32),
        ("text", c.c_char * 4096),
    ]


class Block(c.Structure):
    _fields_ = [("ptr", c.c_void_p), ("size", c.c_size_t), ("ref", ref_t)]


class OpenOptions(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("preset", c.c_char_p),
        ("file", c.c_char_p),
        ("text", c.c_char_p),
        ("set", c.POINTER(c.c_char_p)),
        ("set_count", c.c_size_t),
        ("devices", c.c_char_p),
        ("flags", c.c_uint32),
    ]


class Leak(c.Structure):
    _fields_ = [
        ("place", place_t),
        ("stream", stream_t),
        ("block", Block),
        ("requested", c.c_size_t),
        ("tag", c.c_char_p),
        ("operator_name", c.c_char_p),
        ("step", c.c_uint64),
        ("pool", c.c_char_p),
    ]


class AllocateOptions(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("size", c.c_size_t),
        ("alignment", c.c_size_t),
        ("flags", c.c_uint32),
        ("pool", c.c_uint64),
        ("tag", c.c_char_p),
        ("freed_before", c.c_uint64),
    ]


class MemInfo(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("free", c.c_uint64),
        ("total", c.c_uint64),
        ("cached", c.c_uint64),
        ("limit", c.c_uint64),
    ]


class PoolTrim(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("idle", c.c_uint64),
        ("released", c.c_uint64),
        ("left", c.c_uint64),
        ("pending", c.c_uint64),
    ]


class Statistics(c.Structure):
    _fields_ = [("struct_size", c.c_size_t)] + [(name, c.c_uint64) for name, _, _ in STATISTICS]


class SnapshotRow(c.Structure):
    _fields_ = [
        ("block", Block),
        ("chunk", c.c_uint64),
        ("requested", c.c_size_t),
        ("stream", stream_t),
        ("state", c.c_uint32),
        ("pool", c.c_uint64),
    ]


class OutOfMemory(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("place", place_t),
        ("stream", stream_t),
        ("size", c.c_size_t),
        ("device_free", c.c_uint64),
        ("device_total", c.c_uint64),
        ("text", c.c_char_p),
        ("cause", c.c_int),
        ("tag", c.c_char_p),
        ("operator_name", c.c_char_p),
        ("step", c.c_uint64),
    ]


class Allocator(c.Structure):
    _fields_ = [("stack", c.c_uint64), ("stream", stream_t)]


class Functions(c.Structure):
    _fields_ = [("allocate", c.c_void_p), ("free", c.c_void_p)]


class AllocatorInfo(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("facade", facade_t),
        ("place", place_t),
        ("stream", stream_t),
        ("pool", c.c_uint64),
    ]


class LayerFigure(c.Structure):
    _fields_ = [
        ("layer", c.c_char_p),
        ("type", c.c_char_p),
        ("number", c.c_uint32),
        ("shared", c.c_bool),
        ("stream", stream_t),
        ("thread", c.c_uint64),
        ("forgotten", c.c_bool),
        ("name", c.c_char_p),
        ("unit", c.c_char_p),
        ("meaning", c.c_char_p),
        ("value", c.c_uint64),
        ("pool", c.c_uint64),
    ]


class Cache(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("id", c.c_uint64),
        ("used_bytes", c.c_uint64),
        ("idle_bytes", c.c_uint64),
        ("name", c.c_char * 64),
        ("layer", c.c_char * 64),
    ]


class Neighbours(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("free_before", c.c_uint64),
        ("free_after", c.c_uint64),
        ("run", c.c_uint64),
        ("block", Block),
    ]


class GraphPoolInfo(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("pool", c.c_uint64),
        ("begins", c.c_uint32),
        ("graphs", c.c_uint32),
        ("live_allocations", c.c_uint64),
        ("allocated_bytes", c.c_uint64),
        ("reserved_bytes", c.c_uint64),
        ("outside_blocks", c.c_uint64),
        ("begun", c.c_bool),
    ]


class PauseOptions(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("pool", c.c_uint64),
        ("tag", c.c_char_p),
        ("contents", c.c_uint32),
        ("directory", c.c_char_p),
        ("staging", c.c_size_t),
    ]


class Paused(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("bytes", c.c_uint64),
        ("kept_bytes", c.c_uint64),
        ("rest_bytes", c.c_uint64),
        ("handles", c.c_uint64),
        ("copy_ns", c.c_uint64),
    ]


class Segment(c.Structure):
    _fields_ = [("number", c.c_uint64), ("size", c.c_uint64)]


class Shared(c.Structure):
    _fields_ = [
        ("owner", c.c_uint64 * 2),
        ("sender", c.c_uint64),
        ("offset", c.c_uint64),
        ("size", c.c_uint64),
        ("device", c.c_uint32),
        ("count", c.c_uint32),
        ("segments", Segment * SHARE_SEGMENTS),
        ("descriptors", c.c_int * SHARE_SEGMENTS),
        ("lease", c.c_int),
    ]


class Imported(c.Structure):
    _fields_ = [("ptr", c.c_void_p), ("size", c.c_size_t), ("id", c.c_uint64)]


class Registration(c.Structure):
    _fields_ = [
        ("ptr", c.c_void_p),
        ("size", c.c_size_t),
        ("base", c.c_void_p),
        ("base_size", c.c_size_t),
        ("handles", c.c_uint32),
        ("place", c.c_uint32),
    ]


class PlanBuffer(c.Structure):
    _fields_ = [
        ("lower", c.c_uint64),
        ("upper", c.c_uint64),
        ("size", c.c_uint64),
        ("alignment", c.c_uint64),
        ("offset", c.c_uint64),
        ("kind", c.c_uint32),
        ("fork", c.c_uint32),
        ("branch", c.c_uint32),
        ("flags", c.c_uint32),
    ]


class PlanOptions(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("planner", c.c_char_p),
        ("time_ns", c.c_uint64),
        ("capacity", c.c_uint64),
        ("pools", c.c_int),
        ("close_gaps", c.c_bool),
    ]


class PlanResult(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("peak", c.c_uint64),
        ("lower_bound", c.c_uint64),
        ("time_ns", c.c_uint64),
        ("pools", c.c_uint32),
        ("proved", c.c_bool),
    ]


class PlanLine(c.Structure):
    _fields_ = [("time", c.c_uint64), ("effect", c.c_int), ("buffer", c.c_uint32), ("other", c.c_uint32)]


class PlanDependencies(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("reuses", c.c_uint64),
        ("bytes", c.c_uint64),
        ("implicit", c.c_uint64),
        ("implicit_bytes", c.c_uint64),
    ]


#: The structs by their names in C.
STRUCTS: Dict[str, Type[c.Structure]] = {
    "strata_error_t": Error,
    "strata_block_t": Block,
    "strata_open_options_t": OpenOptions,
    "strata_leak_t": Leak,
    "strata_allocate_options_t": AllocateOptions,
    "strata_mem_info_t": MemInfo,
    "strata_pool_trim_t": PoolTrim,
    "strata_statistics_t": Statistics,
    "strata_snapshot_row_t": SnapshotRow,
    "strata_out_of_memory_t": OutOfMemory,
    "strata_allocator_t": Allocator,
    "strata_functions_t": Functions,
    "strata_allocator_info_t": AllocatorInfo,
    "strata_layer_figure_t": LayerFigure,
    "strata_cache_t": Cache,
    "strata_neighbours_t": Neighbours,
    "strata_graph_pool_info_t": GraphPoolInfo,
    "strata_pause_options_t": PauseOptions,
    "strata_paused_t": Paused,
    "strata_segment_t": Segment,
    "strata_shared_t": Shared,
    "strata_imported_t": Imported,
    "strata_registration_t": Registration,
    "strata_plan_buffer_t": PlanBuffer,
    "strata_plan_options_t": PlanOptions,
    "strata_plan_result_t": PlanResult,
    "strata_plan_line_t": PlanLine,
    "strata_plan_dependencies_t": PlanDependencies,
}

leak_fn = c.CFUNCTYPE(None, c.POINTER(Leak), c.c_void_p)
snapshot_fn = c.CFUNCTYPE(None, c.POINTER(SnapshotRow), c.c_void_p)
out_of_memory_fn = c.CFUNCTYPE(None, c.POINTER(OutOfMemory), c.c_void_p)
free_memory_fn = c.CFUNCTYPE(c.c_uint64, place_t, c.c_size_t, c.c_void_p)
log_fn = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)
layer_figure_fn = c.CFUNCTYPE(None, c.POINTER(LayerFigure), c.c_void_p)
graph_filter_fn = c.CFUNCTYPE(c.c_bool, stream_t, c.c_void_p)
restored_fn = c.CFUNCTYPE(None, c.POINTER(Block), c.c_bool, c.c_void_p)
plan_found_fn = c.CFUNCTYPE(None, c.c_void_p, c.c_size_t, c.c_size_t, c.c_uint64)

_status = c.c_int
_refs = c.POINTER(c.c_uint64)
_text = c.c_char_p
_size = c.POINTER(c.c_size_t)
_block = c.POINTER(Block)
_statistics = c.POINTER(Statistics)
_shared = c.POINTER(Shared)
_buffers = c.POINTER(PlanBuffer)
checkpoint_t = c.c_void_p
graph_t = c.c_void_p

#: The result and the arguments of each function, by its name without "strata_".
PROTOTYPES: Dict[str, Tuple[Any, List[Any]]] = {
    "version": (c.c_char_p, []),
    "abi_version": (c.c_uint32, []),
    "status_name": (c.c_char_p, [_status]),
    "status_text": (c.c_char_p, [_status]),
    "cause_name": (c.c_char_p, [c.c_int]),
    "last_error": (c.POINTER(Error), []),
    "set_log": (_status, [log_fn, c.c_void_p, c.c_int]),
    "open": (_status, [c.POINTER(OpenOptions), c.POINTER(facade_t)]),
    "close": (_status, [facade_t, c.c_int, leak_fn, c.c_void_p]),
    "change_strategy": (_status, [facade_t, c.POINTER(OpenOptions)]),
    "allocate_with": (_status, [facade_t, place_t, stream_t, c.POINTER(AllocateOptions), _block]),
    "free": (_status, [facade_t, ref_t]),
    "free_on": (_status, [facade_t, ref_t, stream_t]),
    "free_pointer": (_status, [facade_t, c.c_void_p]),
    "retain": (_status, [facade_t, ref_t]),
    "block_of": (_status, [facade_t, c.c_void_p, _block]),
    "base_pointer": (_status, [facade_t, c.c_void_p, _block]),
    "base_of": (_status, [facade_t, ref_t, c.POINTER(c.c_void_p), _size]),
    "place_of": (_status, [facade_t, ref_t, c.POINTER(place_t)]),
    "allocation_route": (_status, [facade_t, ref_t, _text, c.c_size_t]),
    "record_stream": (_status, [facade_t, ref_t, stream_t]),
    "erase_stream": (_status, [facade_t, ref_t, stream_t]),
    "stream_forget": (_status, [facade_t, place_t, stream_t]),
    "stream_name": (_status, [facade_t, place_t, stream_t, c.c_char_p]),
    "stream_create": (_status, [facade_t, place_t, c.c_int, c.POINTER(stream_t)]),
    "stream_destroy": (_status, [facade_t, place_t, stream_t]),
    "stream_synchronize": (_status, [facade_t, place_t, stream_t]),
    "stream_work": (_status, [facade_t, place_t, stream_t, c.c_uint64, _refs, c.c_size_t]),
    "note_work": (_status, [facade_t, place_t, stream_t, c.c_uint64, _refs, c.c_size_t]),
    "note_wait": (_status, [facade_t, place_t, stream_t, stream_t]),
    "note_sync": (_status, [facade_t, place_t, stream_t]),
    "note_device_sync": (_status, [facade_t, place_t]),
    "allocator_get": (_status, [facade_t, place_t, stream_t, c.c_uint64, c.POINTER(Allocator)]),
    "allocator_functions": (_status, [Allocator, c.POINTER(Functions)]),
    "allocator_allocate_with": (_status, [Allocator, c.POINTER(AllocateOptions), _block]),
    "allocator_free": (_status, [Allocator, ref_t]),
    "allocator_release": (_status, [Allocator, c.POINTER(c.c_uint64)]),
    "allocator_statistics": (_status, [Allocator, _statistics]),
    "allocator_describe": (_status, [Allocator, c.POINTER(AllocatorInfo)]),
    "release": (_status, [facade_t, place_t, c.POINTER(c.c_uint64)]),
    "trim": (_status, [facade_t, place_t, c.c_uint64, c.POINTER(c.c_uint64)]),
    "mem_info": (_status, [facade_t, place_t, c.POINTER(MemInfo)]),
    "set_limit": (_status, [facade_t, place_t, c.c_uint64]),
    "statistics": (_status, [facade_t, place_t, stream_t, _statistics]),
    "statistics_all": (_status, [facade_t, place_t, _statistics]),
    "statistics_pool": (_status, [facade_t, place_t, c.c_uint64, _statistics]),
    "reset_peaks": (_status, [facade_t, place_t]),
    "statistics_json": (_status, [facade_t, _text, c.c_size_t, _size]),
    "statistics_prometheus": (_status, [facade_t, _text, c.c_size_t, _size]),
    "explain": (_status, [facade_t, _text, c.c_size_t, _size]),
    "snapshot": (_status, [facade_t, place_t, snapshot_fn, c.c_void_p]),
    "chunks_text": (_status, [facade_t, place_t, _text, c.c_size_t, _size]),
    "validate": (_status, [facade_t]),
    "add_out_of_memory_observer": (_status, [facade_t, out_of_memory_fn, c.c_void_p, c.POINTER(c.c_uint32)]),
    "add_free_memory_callback": (_status, [facade_t, free_memory_fn, c.c_void_p, c.POINTER(c.c_uint32)]),
    "remove_callback": (_status, [facade_t, c.c_uint32]),
    "pool": (_status, [facade_t, c.c_char_p, c.POINTER(c.c_uint64)]),
    "pool_begin": (_status, [facade_t, place_t, c.c_uint64]),
    "pool_end": (_status, [facade_t, place_t]),
    "step": (_status, [facade_t]),
    "annotate": (_status, [facade_t, c.c_char_p]),
    "next_count": (_status, [facade_t, place_t, c.POINTER(c.c_uint64)]),
    "set_safe_frontier": (_status, [facade_t, place_t, c.c_uint64]),
    "stream_of": (_status, [facade_t, ref_t, c.POINTER(stream_t)]),
    "same_stream": (_status, [facade_t, place_t, stream_t, stream_t, c.POINTER(c.c_bool)]),
    "set_default_stream": (_status, [facade_t, place_t, stream_t]),
    "stream_wait": (_status, [facade_t, place_t, stream_t, stream_t]),
    "layer_figures": (_status, [facade_t, place_t, layer_figure_fn, c.c_void_p]),
    "cache_below": (_status, [facade_t, place_t, stream_t, c.c_size_t, c.POINTER(Cache)]),
    "pool_current": (_status, [facade_t, place_t, c.POINTER(c.c_uint64)]),
    "pool_of": (_status, [facade_t, ref_t, c.POINTER(c.c_uint64)]),
    "trim_pool": (_status, [facade_t, place_t, c.c_uint64, c.c_uint64, c.POINTER(PoolTrim)]),
    "release_pool": (_status, [facade_t, place_t, c.c_uint64, c.POINTER(c.c_uint64)]),
    "neighbours": (_status, [facade_t, ref_t, c.POINTER(Neighbours)]),
    "best_victims": (_status, [facade_t, place_t, c.c_size_t, c.POINTER(ref_t), c.c_size_t, _size]),
    "pause": (_status, [facade_t, place_t, c.POINTER(PauseOptions), c.POINTER(Paused)]),
    "resume": (_status, [facade_t, place_t, c.c_uint64, c.c_char_p, c.POINTER(Paused)]),
    "graph_pool_begin": (_status, [facade_t, place_t, stream_t, c.POINTER(c.c_uint64)]),
    "graph_pool_begin_filtered": (_status, [facade_t, place_t, graph_filter_fn, c.c_void_p, c.POINTER(c.c_uint64)]),
    "graph_pool_end": (_status, [facade_t, place_t, c.c_uint64]),
    "graph_pool_remove": (_status, [facade_t, place_t, c.c_uint64]),
    "graph_pool_describe": (_status, [facade_t, place_t, c.c_uint64, c.POINTER(GraphPoolInfo)]),
    "graph_pools": (_status, [facade_t, place_t, c.POINTER(c.c_uint64), c.c_size_t, _size]),
    "graph_pool_checkpoint": (_status, [facade_t, place_t, c.c_uint64, c.POINTER(checkpoint_t)]),
    "graph_pool_restore": (_status, [facade_t, place_t, checkpoint_t, restored_fn, c.c_void_p]),
    "graph_checkpoint_drop": (None, [checkpoint_t]),
    "capture_begin": (_status, [facade_t, place_t, stream_t]),
    "capture_end": (_status, [facade_t, place_t, stream_t, c.POINTER(graph_t)]),
    "graph_launch": (_status, [facade_t, place_t, graph_t, stream_t]),
    "graph_destroy": (_status, [facade_t, place_t, graph_t]),
    "enable_peer": (_status, [facade_t, c.c_uint32, c.c_uint32]),
    "export": (_status, [facade_t, ref_t, _shared]),
    "shared_close": (None, [_shared]),
    "share_send": (_status, [c.c_int, _shared]),
    "share_receive": (_status, [c.c_int, _shared]),
    "share_fetch": (_status, [c.c_uint64, _shared]),
    "import": (_status, [facade_t, place_t, _shared, c.POINTER(Imported)]),
    "import_end": (_status, [facade_t, c.c_uint64]),
    "register": (_status, [facade_t, ref_t, c.POINTER(Registration)]),
    "unregister": (_status, [facade_t, c.POINTER(Registration)]),
    "plan_make": (_status, [c.POINTER(PlanOptions), _buffers, c.c_size_t, _refs, c.POINTER(PlanResult)]),
    "plan_check": (_status, [_buffers, c.c_size_t, _refs, _refs]),
    "plan_lower_bound": (_status, [_buffers, c.c_size_t, _refs]),
    "plan_reuse_lines": (_status, [c.POINTER(PlanOptions), _buffers, c.c_size_t, c.POINTER(PlanLine), _size]),
    "plan_depend": (_status, [_buffers, c.c_size_t, _refs, plan_found_fn, c.c_void_p, c.POINTER(PlanDependencies)]),
    "strategy_name": (c.c_char_p, [c.c_size_t]),
    "layer_name": (c.c_char_p, [c.c_size_t]),
}


#: Functions of the headers that Python programs do not need, with the reason. Those of layer.h are not listed.
UNBOUND: Dict[str, str] = {
    "allocate": "strata_allocate_with() does the same and more",
    "allocator_allocate": "strata_allocator_allocate_with() does the same and more",
    "release_ref": "another name of strata_free()",
    "fail": "sets the error of a layer, and layers are written in C",
    "torture_run": "runs programs written in C; the command `strata torture` generates and runs them",
    "shadow_start": "not implemented by the library yet",
    "shadow_stop": "not implemented by the library yet",
}


def declare(library: c.CDLL) -> None:
    """Sets the result and the arguments of every function that is used."""
    for name, (result, arguments) in PROTOTYPES.items():
        function = getattr(library, "strata_" + name)
        function.restype = result
        function.argtypes = arguments
