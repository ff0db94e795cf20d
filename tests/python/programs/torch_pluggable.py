"""A PyTorch program under the pluggable door: what works, what raises, and the figures."""

import torch
import torch.cuda.memory as memory
from torch_common import FAKE, outcome, streams_of, tell

import strata.torch

MIB = 1 << 20
results = {}
facade = strata.torch.install("strata", devices="sim:h100")
streams_of(facade)
results["twice"] = outcome(lambda: strata.torch.install("strata", devices="sim:h100"))
results["same"] = strata.torch.facade() is facade


def tensor(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


first, second = tensor(1), tensor(2)
results["owned"] = [facade.block_of(one.data_ptr()).size for one in (first, second)]
results["empty"] = torch.empty(0, device="cuda").data_ptr()
del first
results["allocated"] = [torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()]
results["reserved"] = [torch.cuda.memory_reserved(), facade.statistics().reserved_bytes]
results["keys"] = sorted(torch.cuda.memory_stats())
results["snapshot"] = sorted(memory._snapshot())
results["blocks"] = [block["state"] for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]]
results["summary"] = "CUDA OOMs: 0" in torch.cuda.memory_summary()
torch.cuda.reset_peak_memory_stats()
torch.cuda.reset_accumulated_memory_stats()
results["peak after reset"] = torch.cuda.max_memory_allocated()

side = torch.cuda.Stream()
facade_side = side.cuda_stream
borrowed = tensor(4)
borrowed.record_stream(side)
before = facade.statistics().borrows
results["borrows"] = before
with torch.cuda.stream(side):
    owned_by_side = tensor(1)
results["stream"] = facade.statistics(stream=side).live_allocations
del borrowed, owned_by_side

results["oom"] = outcome(lambda: tensor(1 << 20))
results["after oom"] = outcome(lambda: tensor(1))
torch.cuda.empty_cache()
results["after empty_cache"] = torch.cuda.memory_reserved() < 64 * MIB
torch.cuda.set_per_process_memory_fraction(0.001)
results["fraction"] = outcome(lambda: tensor(200))
if hasattr(torch.cuda, "get_per_process_memory_fraction"):
    results["fraction told"] = round(torch.cuda.get_per_process_memory_fraction(), 6)
torch.cuda.set_per_process_memory_fraction(1.0)

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    inside = tensor(3)
    address = inside.data_ptr()
    del inside
results["graph pools"] = len({row.pool for row in facade.snapshot() if row.pool})
results["graph kept"] = address not in [tensor(3).data_ptr() for _ in range(8)]
results["graph pool id"] = list(graph.pool()) in [list(part["segment_pool_id"]) for part in torch.cuda.memory_snapshot()]
graph.reset()
torch.cuda.empty_cache()
results["graph gone"] = len({row.pool for row in facade.snapshot() if row.pool})

results["raises"] = {
    "_record_memory_history": outcome(lambda: memory._record_memory_history()),
    "_cuda_checkPoolLiveAllocations": outcome(lambda: torch._C._cuda_checkPoolLiveAllocations(0, (0, 1), set())),
    "MemPool": outcome(lambda: torch.cuda.MemPool()),
    "share_cuda": outcome(lambda: second.untyped_storage()._share_cuda_()),
}
del second
# PyTorch may keep two numbers of its random generator on the device from the first capture on.
results["live"] = facade.statistics().live_allocations
if torch.cuda.device_count() > 1:
    # Strata has one device here: whoever asks it for another's figures is told that there is none.
    questions = [torch.cuda.memory_stats, torch.cuda.reset_peak_memory_stats, torch.cuda.reset_accumulated_memory_stats]
    results["unused"] = [outcome(lambda ask=ask: ask(1)) for ask in questions] + [torch.cuda.memory_allocated(1)]
    results["empty_cache"] = outcome(torch.cuda.empty_cache)
results["mallocs"] = FAKE.fake_cudart_mallocs()
facade.validate()
tell(results)
