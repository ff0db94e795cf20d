"""A training on a GPU, and what else a program does there:  torch_train.py native|pluggable|whole|cpu

It tells the losses, which no allocator may change, and what each part came to. `cpu` trains without a GPU, to try the program itself."""

import os
import sys

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import torch
from torch import nn
from torch.nn import functional as F
from torch_common import tell

mode = sys.argv[1]
device = "cpu" if mode == "cpu" else "cuda"
results = {"version": torch.__version__}
facade = None
if mode in ("pluggable", "whole"):
    import strata.torch

    facade = strata.torch.install("strata", door=mode)
torch.use_deterministic_algorithms(True)


def model():
    torch.manual_seed(3)
    layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True, dropout=0.0)
    return nn.Sequential(nn.Embedding(1000, 128), nn.TransformerEncoder(layer, 2), nn.Linear(128, 1000)).to(device)


def batches(count):
    """Batches of changing length, from pinned memory where there is a GPU."""
    generator = torch.Generator()
    generator.manual_seed(9)
    for step in range(count):
        batch = torch.randint(0, 1000, (8, 65 + 16 * (step % 3)), generator=generator)
        yield batch.pin_memory() if device == "cuda" else batch


def on_side_stream(batch):
    """The next batch, copied by a stream of its own while the last is trained on."""
    if device == "cpu":
        return batch
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        there = batch.to(device, non_blocking=True)
    torch.cuda.current_stream().wait_stream(side)
    there.record_stream(torch.cuda.current_stream())
    return there


def train(step_of):
    trained = model()
    optimizer = torch.optim.AdamW(trained.parameters(), lr=1e-3)
    losses = []
    forward = step_of(trained)
    for batch in batches(8):
        there = on_side_stream(batch)
        loss = F.cross_entropy(forward(there[:, :-1]).flatten(0, 1), there[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach().clone())
    return [loss.item().hex() for loss in losses]


def part(name, call):
    """A part of its own: what it came to, or why not."""
    try:
        results[name] = call()
    except Exception as error:  # noqa: BLE001 - a part that fails must not hide the others
        results[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"


def graph():
    """Three graphs replayed in turn; what else is live stays as it is."""
    source = torch.zeros(1 << 20, device=device)
    graphs = []
    for number in range(3):
        made = torch.cuda.CUDAGraph()
        with torch.cuda.graph(made):
            total = ((source + number) * 2).sum()
        graphs.append((made, total))
    others = [torch.full((1 << 20,), 7.0, device=device) for _ in range(50)]
    told = []
    for value in range(3):
        source.fill_(value)
        for made, _ in graphs:
            made.replay()
        torch.cuda.synchronize()
        told += [total.item() / (1 << 20) for _, total in graphs]
    return [told, all(bool((other == 7.0).all()) for other in others)]


def out_of_memory():
    try:
        torch.empty(1 << 45, dtype=torch.uint8, device=device)
    except torch.OutOfMemoryError:
        kind = "OutOfMemoryError"
    except RuntimeError:
        kind = "RuntimeError"
    return [kind, torch.ones(4, device=device).sum().item()]


def convolution():
    torch.backends.cudnn.benchmark = True
    torch.use_deterministic_algorithms(False)
    return F.conv2d(torch.ones(8, 3, 64, 64, device=device), torch.ones(8, 3, 3, 3, device=device)).sum().item()


results["losses"] = train(lambda trained: trained)
if device == "cuda":
    part("graphs", graph)
    part("out of memory", out_of_memory)
    part("convolution", convolution)
    part("compiled", lambda: len(train(lambda trained: torch.compile(trained, mode="reduce-overhead"))))
    results["peaks"] = [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()]
if facade is not None:
    facade.validate()
    results["served"] = facade.statistics().allocations

tell(results)
