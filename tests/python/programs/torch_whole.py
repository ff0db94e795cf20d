"""A PyTorch program under the whole door: nothing of torch.cuda's memory functions is left out."""

import gc
import os

import torch
import torch.cuda.memory as memory
from torch_common import FAKE, outcome, streams_of, tell

import strata.torch

MIB = 1 << 20
results = {}
facade = strata.torch.install("strata", door="whole", devices="sim:h100")
streams_of(facade)
results["backend"] = torch.cuda.get_allocator_backend()
results["twice"] = outcome(lambda: strata.torch.install("strata", door="whole", devices="sim:h100"))


def tensor(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def wrapped(mib):
    return tensor(mib)


# ---- figures

first, second = tensor(1), tensor(2)
results["owned"] = [facade.block_of(one.data_ptr()).size for one in (first, second)]
del first
stats = torch.cuda.memory_stats()
results["keys"] = sorted(stats)
results["allocated"] = [torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()]
results["reserved"] = [torch.cuda.memory_reserved(), facade.statistics().reserved_bytes]
results["counts"] = [stats["allocation.all." + key] for key in ("current", "peak", "allocated", "freed")]
torch.cuda.reset_peak_memory_stats()
torch.cuda.reset_accumulated_memory_stats()
stats = torch.cuda.memory_stats()
results["after reset"] = [torch.cuda.max_memory_allocated(), stats["allocation.all.allocated"], stats["segment.all.allocated"]]
results["summary"] = "CUDA OOMs: 0" in torch.cuda.memory_summary()
results["accelerator"] = torch.accelerator.memory_allocated() if hasattr(torch.accelerator, "memory_allocated") else 2 * MIB

# ---- streams

side = torch.cuda.Stream()
borrowed = tensor(4)
borrowed.record_stream(side)
with torch.cuda.stream(side):
    owned_by_side = tensor(1)
results["streams"] = [facade.statistics().borrows, facade.statistics(stream=side).live_allocations]
foreign = torch.from_dlpack(borrowed)
results["foreign"] = outcome(lambda: foreign.record_stream(side))
del borrowed, owned_by_side, foreign

# ---- out of memory

heard = []
torch._C._cuda_attach_out_of_memory_observer(lambda device, size, total, free: heard.append((device, size, total, free)))
results["oom"] = outcome(lambda: tensor(1 << 20))
results["oom is"] = isinstance(torch.OutOfMemoryError("x"), RuntimeError)
results["heard"] = [heard[0][0], heard[0][1], heard[0][3] > 0] if heard else None
results["ooms counted"] = torch.cuda.memory_stats()["num_ooms"]
torch.cuda.set_per_process_memory_fraction(0.001)
results["fraction"] = outcome(lambda: tensor(200))
if hasattr(torch.cuda, "get_per_process_memory_fraction"):
    results["fraction told"] = round(torch.cuda.get_per_process_memory_fraction(), 6)
torch.cuda.set_per_process_memory_fraction(1.0)
torch.cuda.empty_cache()
results["after empty_cache"] = torch.cuda.memory_reserved() < 64 * MIB

# ---- history and snapshot

reserved_before = facade.statistics().reserved_bytes
memory._record_memory_history(stacks="python")
third = wrapped(3)
del third
fourth = wrapped(3)
outcome(lambda: tensor(1 << 20))
snapshot = memory._snapshot()
results["snapshot"] = sorted(snapshot)
results["actions"] = [entry["action"] for entry in snapshot["device_traces"][0]]
results["frames"] = [frame["name"] for entry in snapshot["device_traces"][0][:1] for frame in entry["frames"]][:2]
live = [b for segment in snapshot["segments"] for b in segment["blocks"] if b["state"] == "active_allocated"]
results["live"] = sorted([b["address"], b["requested_size"]] for b in live) == sorted(
    [[one.data_ptr(), one.numel()] for one in (second, fourth)]
)
results["live frames"] = [[frame["name"] for frame in b["frames"]][:2] for b in live if b["address"] == fourth.data_ptr()]
results["segments"] = sum(segment["total_size"] for segment in snapshot["segments"]) == facade.statistics().reserved_bytes
torch.cuda.empty_cache()
ups = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
trace = memory._snapshot()["device_traces"][0]
told = sum(ups.get(entry["action"], 0) * entry["size"] for entry in trace)
results["chunks told"] = reserved_before + told == facade.statistics().reserved_bytes
times = [entry["time_us"] for entry in snapshot["device_traces"][0]]
results["times rise"] = times == sorted(times) and times[0] > 1_600_000_000_000_000
memory._record_memory_history(stacks="python", max_entries=2)
for _ in range(3):
    tensor(1)
results["ring"] = [entry["action"] for entry in memory._snapshot()["device_traces"][0]]
memory._record_memory_history(None)
tensor(1)
results["history off"] = memory._snapshot()["device_traces"][0]
del fourth

# ---- graphs

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    kept, inside = tensor(3), tensor(5)
    address, kept_at = inside.data_ptr(), kept.data_ptr()
    del inside
pool = graph.pool()
results["graph kept"] = address not in [tensor(5).data_ptr() for _ in range(8)]
results["graph pool told"] = [s["address"] for s in torch.cuda.memory_snapshot(pool)] != []
results["live check"] = [
    torch._C._cuda_checkPoolLiveAllocations(0, pool, {kept_at}),
    torch._C._cuda_checkPoolLiveAllocations(0, pool, set()),
    torch._C._cuda_checkPoolLiveAllocations(0, pool, {kept_at, address}),
]
state = torch._C._cuda_getCheckpointState(0, pool)
before = torch.cuda.memory_allocated()
again = torch.cuda.CUDAGraph()
with torch.cuda.graph(again, pool=pool):
    later = tensor(7)
storage = later.untyped_storage()
torch._C._cuda_setCheckpointPoolState(0, state, [storage._cdata], [])
results["checkpoint"] = [
    torch._C._cuda_checkPoolLiveAllocations(0, pool, {kept_at}),
    torch.cuda.memory_allocated() - before,
]
del storage, later, kept
results["after checkpoint"] = torch._C._cuda_checkPoolLiveAllocations(0, pool, set())
again.reset()
graph.reset()
del again, graph, state
gc.collect()
torch.cuda.empty_cache()
results["graph gone"] = len({row.pool for row in facade.snapshot() if row.pool})

# ---- MemPool

mem_pool = torch.cuda.MemPool()
results["pool uses"] = [mem_pool.use_count()]
with torch.cuda.use_mem_pool(mem_pool):
    results["pool uses"].append(mem_pool.use_count())
    pooled = tensor(6)
outside = tensor(6)
results["pool uses"].append(mem_pool.use_count())
blocks = [b["address"] for segment in mem_pool.snapshot() for b in segment["blocks"] if b["state"] == "active_allocated"]
results["in the pool"] = [pooled.data_ptr() in blocks, outside.data_ptr() in blocks]
del pooled, outside
with torch.cuda.use_mem_pool(mem_pool):
    results["pool serves again"] = tensor(6).data_ptr() in blocks
del mem_pool
gc.collect()
torch.cuda.empty_cache()
results["pool gone"] = len({row.pool for row in facade.snapshot() if row.pool})

# ---- use_on_oom: the pool holds 50 of 79.5 GiB


def last_resort(**options):
    """The result of a request outside the pool that exceeds the device: the pool's block, or an error; then a request within the pool."""
    torch.cuda.empty_cache()
    ooms = torch.cuda.memory_stats()["num_ooms"]
    one = torch.cuda.MemPool(**options)
    with torch.cuda.use_mem_pool(one):
        pooled = tensor(50 << 10)
    address = pooled.data_ptr()
    del pooled
    try:
        outside = tensor(50 << 10)
        told = [outside.data_ptr() == address, outside.data_ptr() in [s["address"] for s in one.snapshot()]]
        del outside
    except torch.OutOfMemoryError:
        told = ["out of memory"]
    told += [torch.cuda.memory_stats()["num_ooms"] - ooms, one.use_count(), outcome(lambda: tensor(60 << 10))[:16]]
    del one
    gc.collect()
    told.append(outcome(lambda: tensor(60 << 10)))  # an ended pool keeps no memory
    return told


results["last resort"] = [last_resort(use_on_oom=True), last_resort()]

# ---- no_split: blocks with the sizes of PyTorch's segments, if the version has the option

if "no_split" in torch.cuda.MemPool.__init__.__code__.co_varnames:
    whole_blocks = torch.cuda.MemPool(no_split=True)
    sizes = [torch.cuda.memory_allocated()]
    with torch.cuda.use_mem_pool(whole_blocks):
        kept = []
        for mib in (1, 3, 10, 11):
            kept.append(tensor(mib))
            sizes.append(torch.cuda.memory_allocated())
        address = kept[1].data_ptr()
        kept[1] = None
        kept[1] = tensor(5)
    outside = tensor(3)
    sizes.append(torch.cuda.memory_allocated())
    results["no_split"] = [(after - before) // MIB for before, after in zip(sizes, sizes[1:])] + [kept[1].data_ptr() == address]
    del kept, outside, whole_blocks
    gc.collect()

# ---- a forked worker lets go of what it inherits

inherited = [tensor(1), torch.empty(MIB, dtype=torch.uint8, pin_memory=True)]
child = os.fork()
if child == 0:
    inherited.clear()
    gc.collect()
    os._exit(7)
results["forked"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
del inherited

# ---- pinned, other processes

host = torch.empty(3 * MIB, dtype=torch.uint8, pin_memory=True)
results["pinned"] = [facade.statistics("pinned").live_allocations, facade.block_of(host.data_ptr()).size >= 3 * MIB]
if hasattr(torch.cuda, "host_memory_stats"):
    results["host stats"] = torch.cuda.host_memory_stats().get("active_bytes.current", 3 * MIB)
del host
results["pinned freed"] = facade.statistics("pinned").live_allocations
shared = second.untyped_storage()._share_cuda_()
results["shared"] = [shared[1][:1].decode(), shared[2], shared[3]]
results["other's"] = outcome(lambda: torch.UntypedStorage._new_shared_cuda(0, b"x" * 20, *shared[2:]))
results["raw"] = outcome(lambda: torch.cuda.caching_allocator_delete(torch.cuda.caching_allocator_alloc(MIB)))

if torch.cuda.device_count() > 1:
    # Strata has one device here: whoever asks it for another's figures is told that there is none.
    questions = [torch.cuda.memory_stats, torch.cuda.reset_peak_memory_stats, torch.cuda.reset_accumulated_memory_stats]
    results["unused"] = [outcome(lambda ask=ask: ask(1)) for ask in questions] + [torch.cuda.memory_allocated(1)]
    results["empty_cache"] = outcome(torch.cuda.empty_cache)
results["mallocs"] = FAKE.fake_cudart_mallocs()
facade.validate()
tell(results)
