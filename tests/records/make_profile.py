"""Makes samples/profiler_cpu.json.gz: what PyTorch's own profiler writes of two training steps on a CPU.

    pip install torch && python3 make_profile.py && gzip -9 profiler_cpu.json
"""
import torch
from torch.profiler import ProfilerActivity, profile

model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.randn(16, 32)
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
    for _ in range(2):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
profiler.export_chrome_trace("profiler_cpu.json")
