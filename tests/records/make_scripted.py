"""Makes a snapshot that a script converted: floats for integers, tuples for lists, None for missing values, missing keys, negative stream
numbers, addresses above 2^63.

    python3 make_scripted.py > ../fuzz/seeds/pytorch/scripted.pickle
"""
import pickle
import sys

HIGH = (1 << 64) - 4096
events = (
    {"action": "alloc", "addr": HIGH, "size": 300.0, "stream": -1, "time_us": 10.75, "frames": None},
    {"action": "alloc", "addr": HIGH + 512, "size": 40, "stream": (1 << 64) - 2, "time_us": 11.0},
    {"action": "free_requested", "addr": HIGH - (1 << 64), "size": 300, "stream": None, "time_us": 12.999},
    {"action": "free_completed", "addr": HIGH - (1 << 64), "size": 300, "stream": -1, "time_us": 13},
    {"action": "alloc", "addr": HIGH, "size": 50, "stream": -1, "time_us": 14, "frames": ({"filename": None, "name": "go"},)},
    {"action": "alloc", "addr": 4096.0, "size": 60, "time_us": 15, "frames": [None, {"line": 4}, "text"]},
)
sys.stdout.buffer.write(pickle.dumps({"device_traces": (events, ())}, protocol=5))
