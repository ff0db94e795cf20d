"""The whole door. It is compiled once for the installed PyTorch, kept in the user's cache, and installed as PyTorch's allocator."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, List

from .. import _library
from .._cache import cached
from ..facade import Facade
from ._pluggable import door_path

SOURCES = ("whole.cc", "pinned.cc")
#: The oldest PyTorch that the sources support, and the newest that they were compiled against. docs/integrations.md has the table.
OLDEST, NEWEST = (2, 9), (2, 15)


def source_root() -> Path:
    """Returns the folder that contains doors/torch, and strata/ or include/strata/: the tree STRATA_DOORS_SOURCE, or the wheel's
    folder."""
    named = os.environ.get("STRATA_DOORS_SOURCE")
    return Path(named) if named else Path(__file__).resolve().parent.parent / "include"


def torch_version(torch: Any) -> int:
    """Returns 211 for 2.11.0+cu130. Raises RuntimeError if the sources do not support so old a PyTorch."""
    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version < OLDEST:
        raise RuntimeError(f"the whole door is for PyTorch {OLDEST[0]}.{OLDEST[1]} and newer; this is {torch.__version__}")
    return version[0] * 100 + version[1]


def cuda_headers(torch: Any) -> Path:
    """Returns the folder with cuda_runtime_api.h: in PyTorch's own packages, in CUDA_HOME or CUDA_PATH, or in the system."""
    packages = Path(torch.__file__).resolve().parent.parent / "nvidia"
    major = str(torch.version.cuda or "").split(".")[0]
    places = [packages / f"cu{major}" / "include", packages / "cuda_runtime" / "include"]
    places += [Path(os.environ[name]) / "include" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    places += [Path("/usr/local/cuda/include"), Path("/usr/include")]
    for place in places:
        if (place / "cuda_runtime_api.h").exists():
            return place
    raise RuntimeError("cuda_runtime_api.h not found; install PyTorch's own CUDA packages or set CUDA_HOME")


def compiler() -> str:
    named = os.environ.get("CXX") or "c++"
    if shutil.which(named) is None:
        raise RuntimeError(f"the whole door is compiled on this machine, but there is no C++ compiler ({named})")
    return named


def command(torch: Any, output: str) -> List[str]:
    """Returns the command that compiles the door."""
    from torch.utils import cpp_extension

    root = source_root()
    mine = [Path(_library.library_path()).resolve(), Path(door_path()).resolve()]
    libraries = Path(torch.__file__).resolve().parent / "lib"
    made = [compiler(), "-std=c++20" if torch_version(torch) >= 212 else "-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-w"]
    made += [f"-DSTRATA_TORCH={torch_version(torch)}", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    made += [f"-I{root}", f"-I{root / 'include'}"]
    made += [f"-isystem{path}" for path in cpp_extension.include_paths()] + [f"-isystem{cuda_headers(torch)}"]
    made += [str(root / "doors" / "torch" / source) for source in SOURCES]
    made += [f"-L{libraries}", "-lc10_cuda", "-lc10", "-ltorch_cpu", *map(str, mine)]
    made += [f"-Wl,-rpath,{folder}" for folder in (libraries, *(library.parent for library in mine))]
    return made + ["-o", output]


def cache_name(torch: Any) -> str:
    """Returns the name of a cache folder, which differs for each PyTorch, library and state of the sources."""
    told = hashlib.sha256()
    for source in sorted((source_root() / "doors" / "torch").glob("*")):
        told.update(source.name.encode() + source.read_bytes() if source.is_file() else b"")
    told.update(f"{torch.__version__} {torch.__file__} {_library.library_path()} {door_path()}".encode())
    return f"torch-{torch.__version__}-{told.hexdigest()[:16]}"


def build(torch: Any) -> Path:
    """Returns the compiled door, and compiles it first if necessary. Raises RuntimeError with the compiler's messages if that
    fails."""

    def compile_door(path: str) -> None:
        done = subprocess.run(command(torch, path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise RuntimeError(f"the whole door does not compile against PyTorch {torch.__version__}:\n{done.stdout[-4000:]}")

    return cached(cache_name(torch), "libstrata_whole.so", compile_door)


class Whole:
    """The door's library. It provides PyTorch's own statistics, snapshots and errors."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        self.library.strata_whole_use.argtypes = [ctypes.c_uint64]
        self.library.strata_whole_use.restype = ctypes.c_char_p
        self.library.strata_whole_use_pinned.argtypes = [ctypes.c_uint64]


def install(facade: Facade, torch: Any, pinned: bool) -> Whole:
    """Makes the door PyTorch's allocator, and with `pinned` its host allocator too. Raises RuntimeError if PyTorch has used CUDA
    already."""
    if torch.cuda.is_initialized():
        raise RuntimeError("PyTorch has already allocated memory; call strata.torch.install() before the first use of CUDA")
    door = Whole(build(torch))
    why = door.library.strata_whole_use(facade.handle)
    if why is not None:
        raise RuntimeError(why.decode("utf-8", "replace"))
    if pinned:
        door.library.strata_whole_use_pinned(facade.handle)
    return door
