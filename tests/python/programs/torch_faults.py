"""A program that allocates through the pluggable door, with a fault planted; its argument says which. It runs over the stand-in of the
driver whose memory holds bytes, and prints as JSON what was said, and what `--check` finds at the end."""

import ctypes as c
import json
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(os.environ["STRATA_SOURCE"]) / "doors" / "python")]

from test_torch_pluggable import Calls  # noqa: E402

import strata  # noqa: E402
from strata.torch.__main__ import checked  # noqa: E402
from strata.torch._pluggable import Pluggable  # noqa: E402

GUARDED = "version: 1\nstrategy: guarded\nstack: [stream_safe, guard, {auto_growth: {chunk_size: 2MiB}}, system]\n"


def tensor(name, size):
    """A tensor of a module with that name, as a hook of the module says it."""
    s.annotate(name)
    pointer = calls.allocate(size)
    s.annotate(None)
    c.memset(pointer, 1, size)
    return pointer


def sound():
    for size in range(1, 4000, 37):
        calls.free(tensor("sound", size))
    calls.free(tensor("sound", 5 << 20))
    calls("reset")


def beside(at):
    pointer, other = tensor("layers.3.attention", 1000), tensor("layers.4.attention", 1000)
    c.memset(pointer + at, 0, 1)
    calls.free(other)
    calls.free(pointer)
    return pointer


def nameless():
    pointer = calls.allocate(300)
    c.memset(pointer + 300, 0, 4)
    calls.free(pointer)
    return pointer


def reused(size, at):
    """Its memory is used for something else while the program still writes to it."""
    pointer = tensor("layers.3.mlp", size)
    calls.free(pointer)
    c.memset(pointer + at, 7, 8)
    calls("reset")
    return pointer


FAULTS = {
    "sound": sound,
    "after": lambda: beside(1000),
    "last": lambda: beside(1255),
    "before": lambda: beside(-1),
    "nameless": nameless,
    "reused": lambda: reused(5000, 4321),
    "large": lambda: reused(5 << 20, (3 << 20) + 17),
}

said = []
strata.set_log(lambda level, line: said.append(line), "error")
s = strata.open(text=GUARDED, devices="gpu", ignore_environment=True)
calls = Calls(Pluggable(s))
address = FAULTS[sys.argv[1]]()
print(json.dumps({"address": hex(address or 0), "said": said, "status": checked(s)}))
s.close("force")
