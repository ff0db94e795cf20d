"""What PyTorch's own C++ asks of its allocator, on two devices."""

import ctypes as c
import os
import subprocess
from pathlib import Path

import torch
import torch.cuda.memory as memory
from torch_common import FAKE, outcome, streams_of, tell

import strata.torch
from strata.torch import _whole

MIB = 1 << 20
HERE = Path(__file__).resolve().parent
facade = strata.torch.install("strata", door="whole", devices="sim:h100x2")
streams_of(facade)
library = Path(os.environ["XDG_CACHE_HOME"]) / "libwhole_calls.so"
_whole.SOURCES = ("../../tests/python/native/whole_calls.cc",)
subprocess.run(_whole.command(torch, str(library)), check=True)
calls = c.CDLL(str(library))
calls.calls_cache_info.restype = calls.calls_base.restype = c.c_size_t

results = {}
one, two = (torch.empty(4 * MIB, dtype=torch.uint8, device=f"cuda:{device}") for device in range(2))
results["devices"] = [torch.cuda.memory_allocated(device) for device in range(2)]
results["places"] = [facade.statistics(f"gpu:{device}").live_allocations for device in range(2)]

info = facade.mem_info()
results["cache info"] = calls.calls_cache_info(0) == info["free"] + info["cached"]
torch.cuda.set_per_process_memory_fraction(0.001, 0)
results["cache info limited"] = calls.calls_cache_info(0) == facade.mem_info()["limit"] - 4 * MIB
torch.cuda.set_per_process_memory_fraction(1.0, 0)
size = c.c_size_t()
results["base"] = [calls.calls_base(c.c_void_p(one.data_ptr() + 5), c.byref(size)) <= one.data_ptr(), size.value >= 4 * MIB]

calls.calls_peer(0, 1)
results["peers"] = FAKE.fake_cudart_peers()
before = [FAKE.fake_cudart_copies(between) for between in range(2)]
pointers = c.c_void_p(one.data_ptr()), c.c_void_p(two.data_ptr())
calls.calls_copy(pointers[0], 0, pointers[1], 1, c.c_size_t(MIB), 1)
calls.calls_copy(pointers[0], 0, pointers[0], 0, c.c_size_t(MIB), 0)
calls.calls_copy(pointers[0], 0, pointers[1], 1, c.c_size_t(MIB), 0)
results["copies"] = [FAKE.fake_cudart_copies(between) - before[between] for between in range(2)]

results["oom"] = outcome(lambda: torch.empty(1 << 37, dtype=torch.uint8, device="cuda:1")).partition(":")[0]
results["callbacks"] = calls.calls_callbacks()

memory._record_memory_history(stacks="python")
calls.calls_annotate(b"phase", b"forward")
if hasattr(memory, "_annotate_memory"):  # 2.14 and newer
    memory._annotate_memory(two, "weights")
    noted = memory._snapshot()["device_traces"][0][-1]
    results["annotated"] = [noted["addr"] == two.data_ptr() and noted["action"] == "annotate", noted["user_metadata"]]
    memory._record_memory_history(None)
    memory._record_memory_history(stacks="python")
    calls.calls_annotate(b"phase", b"forward")
calls.calls_compile_context(b"1/0")
del one
calls.calls_compile_context(None)
del two
snapshot = memory._snapshot()
results["annotations"] = [entry.get("phase") for entry in snapshot["external_annotations"]]
results["contexts"] = [[entry["compile_context"] for entry in trace] for trace in snapshot["device_traces"]]
torch.empty(64 * MIB, dtype=torch.uint8, device="cuda:0")
torch.cuda.empty_cache()
trace = memory._snapshot()["device_traces"][0]
results["last"] = [entry["action"] for entry in trace][-2:]
results["idle goes"] = facade.statistics().reserved_bytes
memory._record_memory_history(None)
calls.calls_track()
torch.empty(MIB, dtype=torch.uint8, device="cuda")
results["traced"] = calls.calls_traced()
tell(results)
