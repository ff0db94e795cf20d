"""Two processes: the first gives the second a tensor, by the handle that PyTorch makes of it, and frees it when the second has it."""

import os
import pickle
import subprocess
import sys

import torch
from torch_common import outcome, streams_of, tell

import strata.torch

MIB = 1 << 20
facade = strata.torch.install("strata", door="whole", devices="sim:h100")
streams_of(facade)


def other(read):
    """The second process: opens what it is given, twice, and tells where it is."""
    told = pickle.loads(bytes.fromhex(read))
    torch.cuda.init()
    storages = [torch.UntypedStorage._new_shared_cuda(*told) for _ in range(2)]
    same = storages[0].data_ptr() == storages[1].data_ptr()
    mine = outcome(lambda: facade.block_of(storages[0].data_ptr()))
    reserved = facade.statistics().reserved_bytes
    tell({"size": storages[0].nbytes(), "same": same, "mine": mine, "reserved": reserved, "somewhere": storages[0].data_ptr() != 0})


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def first():
    begin = descriptors()
    raw = torch.cuda.caching_allocator_alloc(MIB)
    torch.cuda.caching_allocator_delete(raw)
    block = torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
    told = list(block[MIB : 3 * MIB].untyped_storage()._share_cuda_())
    again = block.untyped_storage()._share_cuda_()[1]
    done = subprocess.run([sys.executable, __file__, pickle.dumps(told).hex()], stdout=subprocess.PIPE, text=True)
    results = {"other": [line for line in done.stdout.splitlines() if line.startswith("RESULTS ")]}
    for name, handle in {"short": told[1][:-1], "wrong": told[1][:1] + b"\x01" * (len(told[1]) - 1)}.items():
        results[name] = outcome(lambda: torch.UntypedStorage._new_shared_cuda(told[0], handle, *told[2:]))
    results["again"] = again == told[1]
    results["held"] = descriptors() > begin
    tell(results)


if len(sys.argv) > 1:
    other(sys.argv[1])
first()
