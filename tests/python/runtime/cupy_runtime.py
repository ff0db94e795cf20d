"""Makes a libcudart for the CuPy of an environment, as torch_runtime.py does for PyTorch. CuPy has a runtime of its own linked in: the
program leads its functions to this one (programs/linked_runtime.py).

    python cupy_runtime.py FOLDER       makes FOLDER/libcudart.so.N, and prints it; 77 where there is no CuPy that this can be done to
"""

import platform
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Optional

from torch_runtime import HERE, package_folder, runtime

sys.path.insert(0, str(HERE / "programs"))
from linked_runtime import MACHINE, functions  # noqa: E402


def linked() -> Optional[Path]:
    """CuPy's library that has the runtime."""
    package = package_folder("cupy_backends")
    return next((package / "cuda" / "api").glob("runtime.*.so"), None) if package else None


def major() -> int:
    """The runtime's version, as the distribution's name has it."""
    names = (re.fullmatch(r"cupy[-_]cuda(\d+)x", one.metadata["Name"] or "") for one in metadata.distributions())
    return next((int(name.group(1)) for name in names if name), 0)


def make(folder: Path) -> Optional[Path]:
    library = linked()
    names = set(functions(library)) if library and platform.machine() == MACHINE else set()
    return runtime(folder, major(), names) if names and major() else None


if __name__ == "__main__":
    made = make(Path(sys.argv[1]))
    print(made or "no CuPy with CUDA is installed here")
    sys.exit(0 if made else 77)
