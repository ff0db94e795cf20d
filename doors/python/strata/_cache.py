"""The user's cache of files that are made once and used by later processes, such as compiled doors.

A shared library executes in the process that loads it. So the cache is used only if it belongs to the user and no other user may
write to it. Otherwise the file is built again in a private folder of this process.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import Callable, Iterator, Optional

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cached(folder: str, name: str, make: Callable[[str], None]) -> Path:
    """Returns the path of a file in a folder of the cache. Calls make(path) to write the file if it does not exist yet.

    If several processes need it at the same time, one makes it and the others wait. If the cache cannot be used, the file is made
    in a temporary folder that is removed with this process. The reason is then printed on standard error.
    """
    try:
        place = _private_folder(_base()) / folder
        return _made_once(_private_folder(place), name, make)
    except (OSError, _Unsafe) as why:
        temporary = tempfile.mkdtemp(prefix="strata-")
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        print(f"strata: {name} is built in {temporary} for this process only: {why}", file=sys.stderr)
        path = os.path.join(temporary, name)
        make(path)
        return Path(path)


class _Unsafe(Exception):
    """Another user could have written a file to the folder."""


def _base() -> Path:
    named = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(named) / "strata" if named else Path.home() / ".cache" / "strata"
    except RuntimeError as why:
        raise OSError(str(why)) from None  # the user has no home folder


def _private_folder(folder: Path) -> Path:
    """Makes a folder that belongs to the user, and removes the write permission of others."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for found in (os.lstat(folder), os.stat(folder)):
        if found.st_uid != os.geteuid():
            raise _Unsafe(f"{folder} belongs to user {found.st_uid}, but this process runs as user {os.geteuid()}")
    if found.st_mode & _OTHERS_WRITE:
        os.chmod(folder, stat.S_IMODE(found.st_mode) & ~_OTHERS_WRITE)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{folder} cannot be written")
    return folder


def _made_once(folder: Path, name: str, make: Callable[[str], None]) -> Path:
    path = folder / name
    with _locked(folder / ".lock"):
        unsafe = _why_unsafe(path)
        if unsafe is None:
            return path
        if os.path.lexists(path):
            print(f"strata: rebuilding {path}: {unsafe}", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            part = os.path.join(temporary, name)
            make(part)
            os.chmod(part, 0o700)
            os.replace(part, path)  # other processes see no file or a complete one
    return path


def _why_unsafe(path: Path) -> Optional[str]:
    """Returns the reason why a file must not be used, or None if it may be used."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return "it does not exist"
    if not stat.S_ISREG(found.st_mode):
        return "it is not a regular file"
    if found.st_uid != os.geteuid():
        return f"it belongs to user {found.st_uid}"
    if found.st_mode & _OTHERS_WRITE:
        return f"others may write to it (mode {stat.S_IMODE(found.st_mode):o})"
    return None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds a lock that ends with the process. Some network file systems have no locks. There several processes may make the file,
    and each replaces it by an equal one."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)
