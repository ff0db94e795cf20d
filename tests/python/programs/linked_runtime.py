"""Leads the functions of a CUDA runtime that a library has linked in to those of another: at each function's beginning lies a jump. Such a
runtime runs over NVIDIA's own driver alone, and what it exports cannot be put before it, as a shared one's can."""

import ctypes
import importlib
import platform
import re
import subprocess

JUMP = b"\xff\x25\0\0\0\0"  # jmp *0(%rip), and the address behind it
MACHINE = "x86_64"


def functions(library):
    """The runtime's functions in a library that is not stripped: name -> (offset, size)."""
    listed = subprocess.run(["nm", "-S", str(library)], stdout=subprocess.PIPE, text=True).stdout
    found = re.findall(r"^(\w+) (\w+) t (cuda[A-Z]\w*)$", listed, re.MULTILINE)
    return {name: (int(offset, 16), int(size, 16)) for offset, size, name in found}


def lead(library, other):
    """All functions of a library that is loaded go to those of `other`, which has them all. Answers how many."""
    with open("/proc/self/maps") as maps:
        mapped = [line.split() for line in maps if line.rstrip().endswith(str(library))]
    base = int(mapped[0][0].partition("-")[0], 16)
    begin, end = next([int(edge, 16) for edge in line[0].split("-")] for line in mapped if "x" in line[1])
    if platform.machine() != MACHINE or ctypes.CDLL(None).mprotect(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), 7):
        raise OSError("no code can be changed here")
    found = functions(library)
    for name, (offset, size) in found.items():
        target = ctypes.cast(getattr(other, name), ctypes.c_void_p).value
        jump = JUMP + target.to_bytes(8, "little")
        assert size >= len(jump), f"{name} is too short"
        ctypes.memmove(base + offset, jump, len(jump))
    return len(found)


def bindings():
    """The functions of the runtime in cuda.bindings: name -> the capsule by which its modules, and others, take one from another."""
    for name in ("cuda.bindings._internal.runtime", "cuda.bindings._bindings.cyruntime"):  # of 13 and of 12
        try:
            taken = importlib.import_module(name).__pyx_capi__
        except ImportError:
            continue
        return {name[1:]: capsule for name, capsule in taken.items() if name.startswith("_cuda")}
    return {}


def lead_bindings(other):
    """They go to those of `other`; to be called before anybody has taken one. Answers how many."""
    set_pointer, found = ctypes.pythonapi.PyCapsule_SetPointer, bindings()
    set_pointer.argtypes = [ctypes.py_object, ctypes.c_void_p]
    for name, capsule in found.items():
        set_pointer(capsule, ctypes.cast(getattr(other, name), ctypes.c_void_p))
    return len(found)
