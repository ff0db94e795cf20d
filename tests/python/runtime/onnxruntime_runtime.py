"""Makes stand-ins for CUDA's libraries that the ONNX Runtime of an environment is linked against, as torch_runtime.py does for PyTorch.

    python onnxruntime_runtime.py FOLDER        makes FOLDER/libcudart.so.N and the others, and prints the first; 77 where there is no
                                                ONNX Runtime with CUDA

The driver is left to the caller: a libcuda.so.1 of its own. What ONNX Runtime's linker takes from it by name is in the libcudart.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import List, Optional

from torch_runtime import build, named, package_folder, runtime, stubs, undefined, versions, wanted

CUDNN = "libcudnn.so.9"  # newer versions are not linked against it: they open it


def provider() -> Optional[Path]:
    """ONNX Runtime's library for CUDA."""
    package = package_folder("onnxruntime")
    library = package / "capi" / "libonnxruntime_providers_cuda.so" if package else None
    return library if library and library.exists() else None


def needed(library: Path) -> List[str]:
    """The libraries of NVIDIA's that it is linked against, but for the runtime and the driver."""
    listed = subprocess.run(["readelf", "-d", str(library)], stdout=subprocess.PIPE, text=True).stdout
    return [name for name in re.findall(r"NEEDED.*\[(lib(?:cu|nv)\S+)\]", listed) if not re.match(r"libcuda(rt)?\.so", name)]


def make(folder: Path) -> Optional[Path]:
    library = provider()
    major, names = wanted([library]) if library else (0, set())
    if not library or not major:
        return None
    functions = undefined(library)
    for name in needed(library):
        own = {function for function, version in functions.items() if version == name}
        build(folder, name, versions(folder, name), stubs(folder / f"{name}.c", own))
    if not (folder / CUDNN).exists():
        build(folder, CUDNN, stubs(folder / "cudnn.c", named(library, "cudnn")))
    driver = {function for function, version in functions.items() if re.match(r"cu[A-Z]", function) and not version}
    return runtime(folder, major, names | driver)


if __name__ == "__main__":
    made = make(Path(sys.argv[1]))
    print(made or "no ONNX Runtime with CUDA is installed here")
    sys.exit(0 if made else 77)
