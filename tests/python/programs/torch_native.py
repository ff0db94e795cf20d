"""The keys of PyTorch's own memory_stats() and of its snapshot, in this version."""

import torch
from torch_common import tell

torch.cuda.init()
stats = torch.cuda.memory_stats()
tell({"keys": sorted(stats), "snapshot": sorted(torch.cuda.memory._snapshot()), "version": torch.__version__})
