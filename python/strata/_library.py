"""Finds and loads libstrata, once, at the first call that wants it."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import Iterator

from . import _abi

_HERE = Path(__file__).resolve().parent


def library_paths() -> Iterator[str]:
    """Where the library is looked for, in order: STRATA_LIBRARY alone if it is set, the wheel's own, the system's."""
    named = os.environ.get("STRATA_LIBRARY")
    if named:
        yield named
        return
    yield str(_HERE / "lib" / "libstrata.so.1")
    yield "libstrata.so.1"


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The library with its functions declared. ImportError: none of the places has one of this ABI."""
    tried = []
    for path in library_paths():
        try:
            loaded = ctypes.CDLL(path)
        except OSError as error:
            tried.append(f"{path}: {error}")
            continue
        loaded.strata_abi_version.restype = ctypes.c_uint32
        found = loaded.strata_abi_version()
        if found == _abi.ABI_VERSION:
            _abi.declare(loaded)
            return loaded
        tried.append(f"{path}: its ABI is {found}, this package is for {_abi.ABI_VERSION}")
    raise ImportError("no libstrata can be loaded; STRATA_LIBRARY may name one. Tried " + "; ".join(tried))


def library_path() -> str:
    """The file of the loaded library, for others that load the same one."""
    return str(library()._name)
