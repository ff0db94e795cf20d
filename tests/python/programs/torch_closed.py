"""A PyTorch program under the door of the first argument, whose facade is closed while tensors are live. It must run to its end."""

import gc
import sys

import torch
from torch_common import outcome, streams_of, tell

import strata.torch

MIB = 1 << 20
door = sys.argv[1]
facade = strata.torch.install("strata", door=door, devices="sim:h100")
streams_of(facade)
side = torch.cuda.Stream()


def tensor():
    return torch.empty(MIB, dtype=torch.uint8, device="cuda")


first, second = tensor(), tensor()
host = torch.empty(MIB, dtype=torch.uint8, pin_memory=True)
pool = torch.cuda.MemPool() if door == "whole" else None
if pool:
    with torch.cuda.use_mem_pool(pool):
        inside = tensor()
facade.close("force")
results = {"recorded": outcome(lambda: first.record_stream(side))}
first = host = inside = None
results["emptied"] = outcome(torch.cuda.empty_cache)
results["requested"] = outcome(tensor)
pool = second = None
gc.collect()
results["alive"] = True
tell(results)
