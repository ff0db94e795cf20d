"""Makes a libcudart and a libcuda for the PyTorch of an environment: runtime/fake_cudart.c, and every other function as `return 0`.

    python torch_runtime.py FOLDER      makes FOLDER/libcudart.so.N and libcuda.so.1, and prints the first; 77 where there is no PyTorch
"""

import os
import re
import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import Dict, Optional, Set, Tuple

HERE = Path(__file__).resolve().parent


def torch_folder() -> Optional[Path]:
    """Where PyTorch lies, found without importing it."""
    found = util.find_spec("torch")
    return Path(found.origin).parent if found and found.origin else None


def wanted(torch: Path) -> Tuple[int, Dict[str, str]]:
    """The runtime's major version, and the functions that PyTorch's libraries take from it, with their versions."""
    names: Dict[str, str] = {}
    for library in sorted((torch / "lib").glob("lib*.so*")):
        listed = subprocess.run(["nm", "-D", "--undefined-only", str(library)], stdout=subprocess.PIPE, text=True).stdout
        names.update(re.findall(r" U (\w+)@(libcudart\.so\.\d+)", listed))
    majors = {int(version.rpartition(".")[2]) for version in names.values()}
    return (majors.pop() if len(majors) == 1 else 0), names


def driver_names(torch: Path) -> Set[str]:
    """The functions of the driver that PyTorch asks for by name."""
    named: Set[str] = set()
    for library in ("libtorch_cuda.so", "libc10_cuda.so", "libcaffe2_nvrtc.so"):
        path = torch / "lib" / library
        if path.exists():
            named.update(name.decode() for name in re.findall(rb"\0(cu[A-Z]\w{3,60})(?=\0)", path.read_bytes()))
    return named


def build(folder: Path, name: str, *arguments: str) -> Path:
    made = folder / name
    options = ["-shared", "-fPIC", "-O1", "-w", f"-Wl,-soname,{name}"]
    subprocess.run([os.environ.get("CC", "cc"), *options, *arguments, "-o", str(made)], check=True)
    return made


def stubs(path: Path, names: Set[str]) -> str:
    path.write_text("".join(f"int {name}(void) {{ return 0; }}\n" for name in sorted(names)))
    return str(path)


def make(folder: Path) -> Optional[Path]:
    """The library, made for the PyTorch that is installed here; None: there is none that uses a libcudart."""
    torch = torch_folder()
    major, names = wanted(torch) if torch else (0, {})
    if not torch or not major:
        return None
    source = HERE / "runtime" / "fake_cudart.c"
    mine = set(re.findall(r"\b(cuda\w+)\(", source.read_text()))
    version = folder / "map"
    version.write_text(f"libcudart.so.{major} {{ global: *; }};\n")
    build(folder, "libcuda.so.1", stubs(folder / "driver.c", driver_names(torch)))
    others = stubs(folder / "runtime.c", set(names) - mine)
    return build(folder, f"libcudart.so.{major}", f"-DRUNTIME_MAJOR={major}", f"-Wl,--version-script={version}", str(source), others)


if __name__ == "__main__":
    library = make(Path(sys.argv[1]))
    print(library or "no PyTorch with CUDA is installed here")
    sys.exit(0 if library else 77)
