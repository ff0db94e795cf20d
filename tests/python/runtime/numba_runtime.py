"""Makes the libcuda.so.1 that the Numba of an environment asks (runtime/fake_cuda.c), and the libcudart whose version its bindings look up.

    python numba_runtime.py FOLDER      makes them there, and prints the first; 77 where there is no Numba
"""

import re
import sys
from pathlib import Path
from typing import Optional, Set

from torch_runtime import HERE, build, package_folder, runtime

SOURCE = HERE / "runtime" / "fake_cuda.c"
MAJOR = 13  # of the stand-in of the driver
WORDS = "long a, long b, long c, long d, long e, long f"
MANY = {"cuLaunchKernel", "cuLaunchCooperativeKernel", "cuLinkAddData"}  # have more arguments


def exported(numba: Path) -> Set[str]:
    """The functions that a Numba without numba-cuda takes by name: it asks no cuGetProcAddress."""
    if package_folder("numba_cuda"):
        return set()
    return set(re.findall(r"'(cu[A-Z]\w+)'", (numba / "cuda" / "cudadrv" / "drvapi.py").read_text()))


def forwarders(path: Path, names: Set[str]) -> str:
    """Each goes to the stand-in of the driver with what its registers have."""
    lines = ["void *fake_cuda_behind(const char *name);"]
    for name in sorted(names):
        lines.append(f'long {name}({WORDS}) {{ return ((long (*)({WORDS}))fake_cuda_behind("{name}"))(a, b, c, d, e, f); }}')
    path.write_text("\n".join(lines))
    return str(path)


def make(folder: Path) -> Optional[Path]:
    numba = package_folder("numba")
    if not numba:
        return None
    runtime(folder, MAJOR, set())
    mine = set(re.findall(r"\bcu[A-Z]\w+", SOURCE.read_text()))
    return build(folder, "libcuda.so.1", str(SOURCE), forwarders(folder / "driver.c", exported(numba) - mine - MANY))


if __name__ == "__main__":
    made = make(Path(sys.argv[1]))
    print(made or "no Numba is installed here")
    sys.exit(0 if made else 77)
