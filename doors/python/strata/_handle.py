"""Base classes of all objects that represent an object of the library."""

from __future__ import annotations

import ctypes
import os
from typing import Any, NoReturn, SupportsIndex

from ._library import library
from .errors import check


class ProcessObject:
    """An object that is valid only in its process and must be unique there, so it cannot be pickled or copied."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"a strata.{type(self).__name__} cannot be pickled or copied, because it belongs to this process; "
            "call strata.open() in each process, and send blocks with Block.export()"
        )


class Handle(ProcessObject):
    """The handle of a facade, with helpers for every group of its functions."""

    handle: int

    def _text(self, function: str, *arguments: Any) -> str:
        """Returns a text from the library. Its length is known only after a call, so the call is repeated until the text fits."""
        call = getattr(library(), "strata_" + function)
        needed = ctypes.c_size_t(4096)
        while True:
            text = ctypes.create_string_buffer(needed.value + 1)
            check(call(self.handle, *arguments, text, len(text), ctypes.byref(needed)))
            if needed.value < len(text):
                return text.value.decode("utf-8", "replace")


def forked(process: int) -> bool:
    """Returns True if this process is a forked copy of the process that opened the object."""
    return os.getpid() != process
