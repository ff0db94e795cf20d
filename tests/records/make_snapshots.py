#!/usr/bin/env python3
"""Makes snapshots as torch.cuda.memory._dump_snapshot() writes them, from a small model of PyTorch's allocator: segments of 2 MiB and
20 MiB, frees that other streams hold up, a request that fails, events of two devices, and a record that begins in the middle.

    make_snapshots.py FILE [--events N] [--protocol P] [--devices N] [--seed N]

The keys and their order are those of torch/csrc/cuda/memory_snapshot.cpp and torch/cuda/memory.py (2.0 to 2.11).
"""
import argparse
import gzip
import pickle
import random

MIB = 1 << 20


class Device:
    def __init__(self, number, rng):
        self.number, self.rng = number, rng
        self.events, self.segments, self.live, self.waiting = [], [], [], []
        self.time, self.next_address = 1_700_000_000_000_000 + number * 3, (0x7F00 + number) << 32

    def event(self, action, address, size, stream, frames):
        self.time += self.rng.randint(1, 40)
        name = "device_free" if action == "oom" else "addr"
        self.events.append({"action": action, name: address, "size": size, "stream": stream, "time_us": self.time,
                            "compile_context": "N/A", "user_metadata": "", "frames": frames})

    def segment_for(self, size, stream, frames):
        for segment in self.segments:
            if segment["stream"] == stream and segment["used"] + size <= segment["total_size"]:
                return segment
        total = 2 * MIB if size <= MIB else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        segment = {"address": self.next_address, "total_size": total, "stream": stream, "used": 0, "blocks": []}
        self.next_address += total + 4 * MIB
        self.segments.append(segment)
        self.event("segment_alloc", segment["address"], total, stream, frames)
        return segment

    def allocate(self, requested, stream, frames):
        size = -(-max(requested, 1) // 512) * 512
        segment = self.segment_for(size, stream, frames)
        address = segment["address"] + segment["used"]
        segment["used"] += size
        block = {"address": address, "size": size, "requested_size": requested, "state": "active_allocated", "frames": frames}
        segment["blocks"].append(block)
        self.event("alloc", address, requested, stream, frames)
        self.live.append((segment, block))

    def free(self, index, borrowed):
        segment, block = self.live.pop(index)
        self.event("free_requested", block["address"], block["requested_size"], segment["stream"], block["frames"])
        if borrowed:
            block["state"] = "active_pending_free"
            self.waiting.append((segment, block))
        else:
            self.complete(segment, block)

    def complete(self, segment, block):
        block["state"] = "inactive"
        self.event("free_completed", block["address"], block["requested_size"], segment["stream"], block["frames"])
        if all(other["state"] == "inactive" for other in segment["blocks"]):
            segment["used"], segment["blocks"] = 0, []

    def snapshot(self, segment):
        blocks, used = list(segment["blocks"]), segment["used"]
        if used < segment["total_size"]:
            blocks.append({"address": segment["address"] + used, "size": segment["total_size"] - used, "requested_size": 0,
                           "state": "inactive", "frames": []})
        active = [block for block in blocks if block["state"] != "inactive"]
        return {"device": self.number, "address": segment["address"], "total_size": segment["total_size"],
                "allocated_size": sum(b["size"] for b in active if b["state"] == "active_allocated"),
                "active_size": sum(b["size"] for b in active), "requested_size": sum(b["requested_size"] for b in active),
                "stream": segment["stream"], "segment_type": "small" if segment["total_size"] == 2 * MIB else "large",
                "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks}


def stack(rng):
    line = rng.randint(10, 60)
    return [{"name": "malloc", "filename": "CUDACachingAllocator.cpp", "line": 0},
            {"name": "linear", "filename": "/usr/lib/python3/dist-packages/torch/nn/functional.py", "line": 2100},
            {"name": f"block_{line % 7}", "filename": "model/train.py", "line": line},
            {"name": "main", "filename": "model/train.py", "line": 99}]


def run(device, count, stacks):
    rng = device.rng
    while len(device.events) < count:
        roll = rng.random()
        if roll < 0.52 or len(device.live) < 4:
            stream = 0 if rng.random() < 0.8 else 0x55550010
            size = rng.choice([4, 512, 4096, 65537, MIB, 3 * MIB + 7, 24 * MIB])
            device.allocate(size, stream, rng.choice(stacks))
        elif roll < 0.97:
            device.free(rng.randrange(len(device.live)), rng.random() < 0.08)
        elif roll < 0.972:
            device.event("oom", 100 * MIB, 1 << 30, 0, rng.choice(stacks))
        while device.waiting and rng.random() < 0.3:
            device.complete(*device.waiting.pop(0))


def make(events, devices, seed):
    rng = random.Random(seed)
    stacks = [stack(rng) for _ in range(40)]
    made = [Device(i, rng) for i in range(devices)]
    older = events // 10  # events that the record has dropped
    for device in made:
        run(device, events // devices + older, stacks)
        device.event("snapshot", 0, 0, 0, [])
        device.events = device.events[older:]
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0, "expandable_segments": False,
                "pinned_num_register_threads": 1, "release_lock_on_cudamalloc": False, "pinned_use_cuda_host_register": False,
                "roundup_power2_divisions": {"1": 0, "2": 0}}
    return {"segments": [device.snapshot(segment) for device in made for segment in device.segments],
            "device_traces": [device.events for device in made], "allocator_settings": settings, "external_annotations": []}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--events", type=int, default=400)
    parser.add_argument("--protocol", type=int, default=4)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    text = pickle.dumps(make(arguments.events, arguments.devices, arguments.seed), protocol=arguments.protocol)
    if arguments.file.endswith(".gz"):
        text = gzip.compress(text, mtime=0)
    with open(arguments.file, "wb") as out:
        out.write(text)


if __name__ == "__main__":
    main()
