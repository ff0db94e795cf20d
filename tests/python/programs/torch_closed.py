"""A PyTorch program under the door of the first argument, whose facade is closed while tensors are live. It must reach its end."""

import gc
import sys

import torch
from torch_common import outcome, tell

import strata.torch

MIB = 1 << 20
door = sys.argv[1]
facade = strata.torch.install("strata", door=door, devices="sim:h100")


def tensor():
    return torch.empty(MIB, dtype=torch.uint8, device="cuda")


first, second = tensor(), tensor()
host = torch.empty(MIB, dtype=torch.uint8, pin_memory=True)
pool = torch.cuda.MemPool() if door == "whole" else None
if pool:
    with torch.cuda.use_mem_pool(pool):
        inside = tensor()
facade.close("force")
results = {"recorded": outcome(lambda: first.record_stream(torch.cuda.Stream()))}
first = host = inside = None
results["emptied"] = outcome(torch.cuda.empty_cache)
results["requested"] = outcome(tensor)
pool = None
gc.collect()
results["alive"] = True
tell(results)  # `second` ends with the interpreter
