"""What all objects that stand for something in the library share."""

from __future__ import annotations

import ctypes
import os
from typing import Any, NoReturn, SupportsIndex

from ._library import library
from .errors import check


class ProcessObject:
    """An object that means nothing in another process, nor twice in this one: it refuses to be pickled and copied."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"a strata.{type(self).__name__} cannot be pickled or copied, because it belongs to this process; "
            "call strata.open() in each process, and send blocks with Block.export()"
        )


class Handle(ProcessObject):
    """A facade's number in the library, and what every group of its functions needs."""

    handle: int

    def _text(self, function: str, *arguments: Any) -> str:
        """A text of the library. Its length is known only after the call, which is repeated until the text fits."""
        call = getattr(library(), "strata_" + function)
        needed = ctypes.c_size_t(4096)
        while True:
            text = ctypes.create_string_buffer(needed.value + 1)
            check(call(self.handle, *arguments, text, len(text), ctypes.byref(needed)))
            if needed.value < len(text):
                return text.value.decode("utf-8", "replace")


def forked(process: int) -> bool:
    """Whether this is a forked copy of the process that opened something."""
    return os.getpid() != process
