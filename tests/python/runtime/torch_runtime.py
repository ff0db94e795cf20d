"""Makes a libcudart and a libcuda for the PyTorch of an environment: runtime/fake_cudart.c, and every other function as `return 0`.
The other *_runtime.py share this.

    python torch_runtime.py FOLDER      makes FOLDER/libcudart.so.N and libcuda.so.1, and prints the first; 77 where there is no PyTorch
"""

import os
import re
import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import Dict, Iterable, Optional, Set, Tuple

HERE = Path(__file__).resolve().parent.parent


def package_folder(name: str) -> Optional[Path]:
    """Where a package lies, found without importing it."""
    found = util.find_spec(name)
    return Path(found.origin).parent if found and found.origin else None


def undefined(library: Path) -> Dict[str, str]:
    """The functions that a library takes from others, each with its version, which is empty where it has none."""
    listed = subprocess.run(["nm", "-D", "--undefined-only", str(library)], stdout=subprocess.PIPE, text=True).stdout
    return dict(re.findall(r" U (\w+)@?(\S*)", listed))


def wanted(libraries: Iterable[Path]) -> Tuple[int, Set[str]]:
    """The runtime's major version, and the functions that these libraries take from it."""
    names: Dict[str, str] = {}
    for library in libraries:
        names.update((name, version) for name, version in undefined(library).items() if version.startswith("libcudart.so."))
    majors = {int(version.rpartition(".")[2]) for version in names.values()}
    return (majors.pop() if len(majors) == 1 else 0), set(names)


def named(library: Path, prefix: str) -> Set[str]:
    """The functions that a library asks for by name: what it has of such strings."""
    pattern = rb"\0(%s[A-Z]\w{3,60})(?=\0)" % prefix.encode()
    return {name.decode() for name in re.findall(pattern, library.read_bytes())} if library.exists() else set()


def build(folder: Path, name: str, *arguments: str) -> Path:
    made = folder / name
    options = ["-shared", "-fPIC", "-O1", "-w", f"-Wl,-soname,{name}"]
    subprocess.run([os.environ.get("CC", "cc"), *options, *arguments, "-o", str(made)], check=True)
    return made


def stubs(path: Path, names: Set[str]) -> str:
    path.write_text("".join(f"int {name}(void) {{ return 0; }}\n" for name in sorted(names)))
    return str(path)


def versions(folder: Path, name: str) -> str:
    """What gives a library's functions its name as their version, as NVIDIA's have it."""
    script = folder / f"{name}.map"
    script.write_text(f"{name} {{ global: *; }};\n")
    return f"-Wl,--version-script={script}"


def runtime(folder: Path, major: int, names: Set[str]) -> Path:
    """The libcudart: what the source here has, and `names` beside it."""
    source = HERE / "runtime" / "fake_cudart.c"
    mine = set(re.findall(r"\b((?:__)?cuda\w+)\(", source.read_text()))
    name = f"libcudart.so.{major}"
    return build(folder, name, f"-DRUNTIME_MAJOR={major}", versions(folder, name), str(source), stubs(folder / "runtime.c", names - mine))


def make(folder: Path) -> Optional[Path]:
    """The library, made for the PyTorch that is installed here; None: there is none that uses a libcudart."""
    torch = package_folder("torch")
    major, names = wanted(sorted((torch / "lib").glob("lib*.so*"))) if torch else (0, set())
    if not torch or not major:
        return None
    libraries = ("libtorch_cuda.so", "libc10_cuda.so", "libcaffe2_nvrtc.so")
    driver = set().union(*(named(torch / "lib" / library, "cu") for library in libraries))
    build(folder, "libcuda.so.1", stubs(folder / "driver.c", driver))
    return runtime(folder, major, names)


if __name__ == "__main__":
    library = make(Path(sys.argv[1]))
    print(library or "no PyTorch with CUDA is installed here")
    sys.exit(0 if library else 77)
