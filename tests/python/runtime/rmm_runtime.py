"""Makes what the RMM of an environment needs where there is no GPU: a libcudart for the bindings that it calls from Python, which have a
runtime of their own linked in (programs/linked_runtime.py leads them to this one), and what RMM exports of its questions after the current
device. The rest of RMM has a runtime linked in that nobody can lead: its own copies, streams and pools are out of reach.

    python rmm_runtime.py FOLDER        makes FOLDER/libcudart.so.N and rmm_device.so, to be loaded before RMM, and prints the first; 77
                                        where there is no RMM that this can be done to
"""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Optional, Set

from torch_runtime import HERE, build, package_folder, runtime, stubs

sys.path.insert(0, str(HERE / "programs"))
from linked_runtime import bindings  # noqa: E402

DEVICE = r"_ZN3rmm\w*(?:23get_current_cuda_device|20cuda_set_device_raii)\w+"


def asked() -> Set[str]:
    """RMM's functions that ask for the current device, or set it."""
    package = package_folder("librmm")
    library = next(package.glob("lib*/librmm.so"), None) if package else None
    listed = subprocess.run(["nm", "-D", "--defined-only", str(library)], stdout=subprocess.PIPE, text=True).stdout if library else ""
    return set(re.findall(rf" T ({DEVICE})\b", listed))


def make(folder: Path) -> Optional[Path]:
    names, device = set(bindings()), asked()
    if not names or not device:
        return None
    build(folder, "rmm_device.so", stubs(folder / "device.c", device))
    return runtime(folder, int(metadata.version("cuda-bindings").partition(".")[0]), names)


if __name__ == "__main__":
    made = make(Path(sys.argv[1]))
    print(made or "no RMM is installed here, or none whose runtime can be replaced")
    sys.exit(0 if made else 77)
