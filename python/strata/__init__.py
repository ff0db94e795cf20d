"""Strata: GPU memory allocators built out of layers.

    import strata

    with strata.open("strata", devices="sim:h100") as s:
        copy = s.stream(name="copy")
        batch = s.allocate(64 << 20, stream=copy, tag="batch")
        batch.record_stream(None)   # the default stream uses it too
        batch.free()                # reused when both are done
        print(s.report())
        copy.destroy()

`devices="gpu"` serves a real one. The doors into other libraries are strata.torch, strata.cupy, strata.rmm, strata.numba and
strata.onnxruntime.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from . import _abi
from ._library import library, library_path
from .command import compare, explain
from .errors import BusyError, DeviceError, InvalidError, OutOfMemoryError, StaleError, StrataError, StrategyError, check
from .facade import Block, Facade, Leak, Stream, names, open
from .figures import Row, Statistics
from .places import Place, gpu, host, managed, pinned

__all__ = [
    "Block",
    "BusyError",
    "DeviceError",
    "Facade",
    "InvalidError",
    "Leak",
    "OutOfMemoryError",
    "Place",
    "Row",
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
    "presets",
    "set_log",
    "version",
]


def version() -> str:
    """The library's version, "0.1.0"."""
    return str(library().strata_version().decode())


def presets() -> List[str]:
    """The names of the presets."""
    return list(names("strata_strategy_name"))


def layers() -> List[str]:
    """The names of the layers."""
    return list(names("strata_layer_name"))


# Messages that are under way when the function is replaced may still call the one before.
_logs: List[Any] = []


def set_log(log: Optional[Callable[[str, str], None]], level: str = "warning") -> None:
    """What the library says goes to `log(level, text)`, up to `level` ("nothing", "error", "warning", "info", "debug"), from any
    thread. None: to standard error. The log holds for the whole process."""

    def called(number: int, text: bytes, _: Any) -> None:
        if log is not None:
            log(_abi.LOG_LEVELS[number], text.decode("utf-8", "replace"))

    function = _abi.log_fn(called) if log is not None else _abi.log_fn()
    check(library().strata_set_log(function, None, _abi.LOG_LEVELS.index(level)))
    _logs.append(function)
