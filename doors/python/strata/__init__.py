"""Strata: GPU memory allocators built out of layers.

    import strata

    with strata.open("strata", devices="sim:h100") as s:
        copy = s.stream(name="copy")
        batch = s.allocate(64 << 20, stream=copy, tag="batch")
        batch.record_stream(None)   # the default stream uses it too
        batch.free()                # reused when both are done
        print(s.report())
        copy.destroy()

`devices="gpu"` serves a real GPU. The doors into other libraries are strata.torch, strata.cupy, strata.rmm, strata.numba and
strata.onnxruntime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, List, Optional

from . import _abi, _arguments, planning
from ._library import library, library_path
from .allocator import Allocator, AllocatorInfo, Functions
from .block import Block, Leak, Neighbours
from .caches import POOL_EVERY, POOL_ORDINARY, Cache, LayerFigure, Paused, PoolTrim
from .command import compare, explain
from .errors import (
    BusyError,
    DeviceError,
    FileError,
    InvalidError,
    MissingFileError,
    OutOfMemoryError,
    StaleError,
    StrataError,
    StrategyError,
    check,
)
from .facade import Facade, names, open
from .figures import Row, Statistics
from .graphs import Checkpoint, Graph, GraphPool, GraphPoolInfo, Restored
from .places import Place, gpu, host, managed, pinned
from .sharing import Imported, Registration, Shared
from .stream import Stream

__all__ = [
    "POOL_EVERY",
    "POOL_ORDINARY",
    "Allocator",
    "AllocatorInfo",
    "Block",
    "BusyError",
    "Cache",
    "Checkpoint",
    "DeviceError",
    "Facade",
    "FileError",
    "Functions",
    "Graph",
    "GraphPool",
    "GraphPoolInfo",
    "Imported",
    "InvalidError",
    "LayerFigure",
    "Leak",
    "MissingFileError",
    "Neighbours",
    "OutOfMemoryError",
    "Paused",
    "PoolTrim",
    "Place",
    "Registration",
    "Restored",
    "Row",
    "Shared",
    "StaleError",
    "Statistics",
    "StrataError",
    "StrategyError",
    "Stream",
    "compare",
    "explain",
    "gpu",
    "host",
    "layers",
    "library_path",
    "managed",
    "open",
    "pinned",
    "planning",
    "presets",
    "set_log",
    "version",
]

__version__: str
"""The library's version, as version() gives it."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        # Computed at the first use, because it loads the library.
        if name == "__version__":
            return version()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def version() -> str:
    """Returns the version of the library, "0.1.0"."""
    return str(library().strata_version().decode())


def presets() -> List[str]:
    """Returns the names of the presets."""
    return list(names("strata_strategy_name"))


def layers() -> List[str]:
    """Returns the names of the layers."""
    return list(names("strata_layer_name"))


# Replaced functions are kept, because a message that another thread is writing may still call the earlier one.
_logs: List[Any] = []


def set_log(log: Optional[Callable[[str, str], None]], level: str = "warning") -> None:
    """Sends the messages of the library to `log(level, text)`. Any thread may call it. If `log` is None, they go to standard error.

    Messages above `level` ("nothing", "error", "warning", "info", "debug") are dropped. The setting is for the whole process.
    """

    number_of_level = _arguments.choice(level, "level", _abi.LOG_LEVELS)
    if log is not None:
        _arguments.function(log, "log")

    def called(number: int, text: bytes, _: Any) -> None:
        if log is not None:
            log(_abi.LOG_LEVELS[number], text.decode("utf-8", "replace"))

    function = _abi.log_fn(called) if log is not None else _abi.log_fn()
    check(library().strata_set_log(function, None, number_of_level))
    _logs.append(function)
