"""Finds and loads libstrata once, at the first call that needs it."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import Iterator, Optional

from . import _abi

_HERE = Path(__file__).resolve().parent


def library_paths() -> Iterator[str]:
    """Yields the paths to try, in order: only STRATA_LIBRARY if it is set, else the wheel's library and then the system's."""
    named = os.environ.get("STRATA_LIBRARY")
    if named:
        yield named
        return
    yield str(_HERE / "lib" / "libstrata.so.1")
    yield "libstrata.so.1"


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """Returns the library with its functions declared. Raises ImportError if no path has a compatible libstrata. The text lists the
    reason for each path."""
    tried = []
    for path in library_paths():
        try:
            loaded = ctypes.CDLL(path)
        except OSError as error:
            tried.append(f"{path}: {error}")
            continue
        unusable = _why_unusable(loaded)
        if unusable is None:
            _abi.declare(loaded)
            return loaded
        tried.append(f"{path}: {unusable}")
    raise ImportError("cannot load libstrata; set STRATA_LIBRARY to its path. Tried " + "; ".join(tried))


def _why_unusable(loaded: ctypes.CDLL) -> Optional[str]:
    """Returns the reason why this package cannot use a library, or None if it can."""
    if not hasattr(loaded, "strata_abi_version") or not hasattr(loaded, "strata_version"):
        return "it is another library: it has no function strata_abi_version()"
    loaded.strata_abi_version.restype, loaded.strata_version.restype = ctypes.c_uint32, ctypes.c_char_p
    found, version = loaded.strata_abi_version(), loaded.strata_version().decode("utf-8", "replace")
    if found != _abi.ABI_VERSION:
        return f"it is libstrata {version} with the ABI {found}, and this package needs the ABI {_abi.ABI_VERSION}"
    missing = [name for name in _abi.PROTOTYPES if not hasattr(loaded, "strata_" + name)]
    if missing:
        return f"it is libstrata {version} without strata_{missing[0]}(), which this package needs; install the two together"
    return None


def library_path() -> str:
    """Returns the file of the loaded library, for programs that must load the same one."""
    return str(library()._name)
