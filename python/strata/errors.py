"""One exception for each status that a call may answer."""

from __future__ import annotations

from typing import Dict, Type

from . import _abi
from ._library import library


class StrataError(Exception):
    """A call failed. `str(error)` is the reason that the library gives.

    Attributes:
        status: the name, "E_STRATEGY".
        device_code: the driver's number, 0 if no driver call failed.
        line, column: in the file that the text names, counted from 1; 0 if the error is not in a file.
    """

    def __init__(self, status: str, text: str, device_code: int = 0, line: int = 0, column: int = 0) -> None:
        super().__init__(text)
        self.status = status
        self.device_code = device_code
        self.line = line
        self.column = column


class OutOfMemoryError(StrataError, MemoryError):
    """E_NO_MEMORY: the text is the report, with the cause first and then what helps."""


class StaleError(StrataError):
    """E_STALE: the block was freed already, or its facade is closed."""


class StrategyError(StrataError, ValueError):
    """E_STRATEGY, E_FORMAT: a strategy or a file is wrong; the text begins with file:line:column."""


class DeviceError(StrataError):
    """E_NO_DEVICE, E_DEVICE, E_DEVICE_LOST, E_SHUTDOWN."""


class BusyError(StrataError):
    """E_BUSY, E_NOT_READY: something is still in use."""


class InvalidError(StrataError, ValueError):
    """E_INVALID: an argument is wrong."""


_CLASSES: Dict[str, Type[StrataError]] = {
    "E_NO_MEMORY": OutOfMemoryError,
    "E_STALE": StaleError,
    "E_STRATEGY": StrategyError,
    "E_FORMAT": StrategyError,
    "E_NO_DEVICE": DeviceError,
    "E_DEVICE": DeviceError,
    "E_DEVICE_LOST": DeviceError,
    "E_SHUTDOWN": DeviceError,
    "E_BUSY": BusyError,
    "E_NOT_READY": BusyError,
    "E_INVALID": InvalidError,
}


def check(status: int) -> None:
    """Raises what the calling thread's last error says, unless `status` is 0."""
    if status == 0:
        return
    error = library().strata_last_error().contents
    name = _abi.STATUSES.get(status, str(status))
    text = error.text.decode("utf-8", "replace")
    raise _CLASSES.get(name, StrataError)(name, text, error.device_code, error.line, error.column)
