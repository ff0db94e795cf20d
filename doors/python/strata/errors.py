"""One exception for each error status.

Every exception can be pickled and copied with all its attributes, so errors of worker processes lose nothing.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Type, Union, cast

from . import _abi
from ._library import library

if TYPE_CHECKING:
    from .block import Leak


class StrataError(Exception):
    """A call failed. `str(error)` is the reason from the library.

    Attributes:
        status: the name of the status, as "E_STRATEGY".
        device_code: the driver's error number, or 0 if no driver call failed.
        line, column: the position in the file that the text names, counted from 1, or 0 if the error is not in a file.
    """

    def __init__(self, status: str, text: str, device_code: int = 0, line: int = 0, column: int = 0) -> None:
        super().__init__(text)
        self.status = status
        self.device_code = device_code
        self.line = line
        self.column = column

    @property
    def summary(self) -> str:
        """The general meaning of the status: "out of memory in this place"."""
        number = next((number for number, name in _abi.STATUSES.items() if name == self.status), -1)
        return str(library().strata_status_text(number).decode())

    def __reduce__(self) -> Tuple[Any, ...]:
        return _rebuilt, (_importable(type(self)), self.args, _attributes(self))

    def __copy__(self) -> "StrataError":
        return _rebuilt(type(self), self.args, _attributes(self))


class OutOfMemoryError(StrataError, MemoryError):
    """E_NO_MEMORY: the text is the report, with the cause first and then the remedies."""


class StaleError(StrataError):
    """E_STALE: the block was freed already, or its facade is closed."""


class StrategyError(StrataError, ValueError):
    """E_STRATEGY, E_FORMAT: a strategy or a file is wrong. The text begins with file:line:column."""


class FileError(StrategyError, OSError):
    """A file cannot be opened. The error has the `errno`, `strerror` and `filename` of an OSError."""

    def __init__(self, status: str, text: str, reason: OSError) -> None:
        StrategyError.__init__(self, status, text)
        self.errno, self.strerror, self.filename = reason.errno, reason.strerror, reason.filename

    def __str__(self) -> str:
        return str(self.args[0])


class MissingFileError(FileError, FileNotFoundError):
    """A file does not exist."""


class DeviceError(StrataError):
    """E_NO_DEVICE, E_DEVICE, E_DEVICE_LOST, E_SHUTDOWN."""


class BusyError(StrataError):
    """E_BUSY, E_NOT_READY: something is still in use.

    Attributes:
        leaks: the live blocks, if they prevented the close of a facade.
    """

    leaks: "List[Leak]" = []


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

#: An OSError keeps these outside its dictionary.
_OF_THE_SYSTEM = ("errno", "strerror", "filename", "filename2")


def _attributes(error: StrataError) -> Dict[str, Any]:
    told = dict(error.__dict__)
    if isinstance(error, OSError):
        told.update({name: getattr(error, name) for name in _OF_THE_SYSTEM if getattr(error, name) is not None})
    return told


def _importable(kind: Type[StrataError]) -> Type[StrataError]:
    """Returns the class itself, or its first importable base class, because doors create classes within functions."""
    for base in kind.__mro__:
        found: Any = sys.modules.get(base.__module__)
        for name in base.__qualname__.split("."):
            found = getattr(found, name, None)
        if found is base:
            return cast("Type[StrataError]", base)  # StrataError at the latest
    return StrataError


def _rebuilt(kind: Type[StrataError], arguments: Tuple[Any, ...], attributes: Dict[str, Any]) -> StrataError:
    # __init__ is not called, because its arguments differ from class to class. __new__ must match the layout of the class.
    error = OSError.__new__(kind) if issubclass(kind, OSError) else BaseException.__new__(kind)
    error.args = arguments
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


def check(status: int) -> None:
    """Raises the last error of the calling thread, unless `status` is 0."""
    if status == 0:
        return
    error = library().strata_last_error().contents
    # A newer library may have a status that is missing in this package.
    name = _abi.STATUSES.get(status) or library().strata_status_name(status).decode().replace("STRATA_", "", 1)
    text = error.text.decode("utf-8", "replace")
    raise _CLASSES.get(name, StrataError)(name, text, error.device_code, error.line, error.column)


def check_files(status: int, *paths: Union[str, bytes, None]) -> None:
    """Like check(), for a call that uses files or folders. If one of them cannot be opened, the error is also an OSError."""
    try:
        check(status)
    except StrataError as error:
        found = file_error(error, *paths) if error.status in ("E_IO", "E_STRATEGY", "E_FORMAT") else None
        raise found or error


def file_error(error: StrataError, *paths: Union[str, bytes, None]) -> Optional[FileError]:
    """Returns the error for the first file that cannot be opened, with the text of `error`, or None if all files can be opened."""
    for path in paths:
        if path is None:
            continue
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError as reason:
            reason.filename = os.fsdecode(path)
            kind = MissingFileError if isinstance(reason, FileNotFoundError) else FileError
            return kind(error.status, str(error), reason)
    return None
