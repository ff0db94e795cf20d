"""A real PyTorch over a libcudart that does nothing (torch_runtime.py) and a simulated device. STRATA_TORCH_PYTHON names the Pythons that
have PyTorch, with ':' between them; without it this one is asked."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCE = Path(os.environ["STRATA_SOURCE"])
MIB = 1 << 20


def has_torch(python):
    found = "import sys; from importlib import util; sys.exit(0 if util.find_spec('torch') else 1)"
    return subprocess.run([python, "-c", found]).returncode == 0


PYTHONS = [python for python in os.environ.get("STRATA_TORCH_PYTHON", sys.executable).split(":") if has_torch(python)]
pytestmark = pytest.mark.skipif(not PYTHONS, reason="no PyTorch is installed here (STRATA_TORCH_PYTHON names a Python that has it)")


@pytest.fixture(scope="module", params=PYTHONS)
def run(request, tmp_path_factory):
    """run(program, arguments): what the program tells, under this PyTorch."""
    folder = tmp_path_factory.mktemp("runtime")
    made = subprocess.run([request.param, str(HERE / "torch_runtime.py"), str(folder)], stdout=subprocess.PIPE, text=True)
    if made.returncode == 77:
        pytest.skip(made.stdout)
    runtime = made.stdout.strip()
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime,
        "LD_LIBRARY_PATH": str(folder),
        "STRATA_FAKE_CUDART": runtime,
        "STRATA_DOORS_ALLOW_SIMULATED": "1",
        "PYTHONPATH": f"{SOURCE / 'python'}:{HERE / 'programs'}",
    }

    @functools.lru_cache(maxsize=None)
    def program(*arguments, **more):
        done = subprocess.run(
            [request.param, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=250, env={**environment, **more}
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULTS ")]
        return (json.loads(lines[0][8:]) if lines else None), done

    return program


def results(run, name):
    told, done = run(str(HERE / "programs" / name))
    assert told is not None, done.stderr
    return told


def test_tensors_are_strata_s_blocks(run):
    told = results(run, "torch_pluggable.py")
    assert told["owned"] == [MIB, 2 * MIB]
    assert told["empty"] == 0
    assert told["mallocs"] == 0, "PyTorch asked the runtime for memory past the door"
    assert told["live"] == 2


def test_installing_twice_is_refused(run):
    told = results(run, "torch_pluggable.py")
    assert told["twice"] == "RuntimeError: Strata is PyTorch's allocator already"
    assert told["same"]


def test_the_figures_of_torch_cuda(run):
    told = results(run, "torch_pluggable.py")
    assert told["allocated"] == [2 * MIB, 3 * MIB]
    assert told["reserved"][0] == told["reserved"][1] > 0
    assert told["peak after reset"] == 2 * MIB
    assert told["summary"]
    assert told["blocks"].count("active_allocated") == 1


def test_keys_are_those_of_this_pytorch(run):
    mine, native = results(run, "torch_pluggable.py"), results(run, "torch_native.py")
    assert set(native["keys"]) <= set(mine["keys"])
    assert set(native["snapshot"]) <= set(mine["snapshot"])


def test_streams(run):
    told = results(run, "torch_pluggable.py")
    assert told["borrows"] == 1
    assert told["stream"] == 1


def test_out_of_memory_and_limits(run):
    told = results(run, "torch_pluggable.py")
    assert told["oom"].startswith("RuntimeError: CUDA out of memory. out of memory in gpu:0")
    assert told["after oom"] == "ok"
    assert told["after empty_cache"]
    assert told["fraction"].startswith("RuntimeError: CUDA out of memory")
    assert told.get("fraction told", 0.001) == 0.001


def test_a_graph_has_a_pool_of_its_own(run):
    told = results(run, "torch_pluggable.py")
    assert (told["graph pools"], told["graph kept"], told["graph pool id"], told["graph gone"]) == (1, True, True, 0)


def test_what_still_raises_is_what_the_page_says(run):
    """docs/pytorch.md lists these calls in its table of the pluggable door."""
    page = (SOURCE / "docs" / "pytorch.md").read_text()
    for call, said in results(run, "torch_pluggable.py")["raises"].items():
        assert said.startswith("RuntimeError: "), f"{call}: {said}"
        assert f"`{call}" in page, call


def test_a_script_runs_unchanged(run, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torch\n"
        "x = torch.empty(1 << 20, dtype=torch.uint8, device='cuda')\n"
        "print(sys.argv, torch.cuda.memory_allocated())\n"
        "sys.exit(3)\n"
    )
    options = ["--strategy", "pytorch", "--devices", "sim:h100", "--check", "--report"]
    _, done = run("-m", "strata.torch", *options, str(script), "a", "-b")
    assert done.stdout == f"{[str(script), 'a', '-b']} 1048576\n"
    assert done.returncode == 3
    assert "strata.torch: checked, no fault" in done.stderr
    assert "live_allocations" in done.stderr and "gpu:0" in done.stderr


def test_a_wrong_strategy_ends_before_the_script(run, tmp_path):
    (tmp_path / "wrong.yaml").write_text("version: 1\nstack: [nothing]\n")
    _, done = run("-m", "strata.torch", "--strategy", str(tmp_path / "wrong.yaml"), "--devices", "sim", "never.py")
    assert done.returncode == 2
    assert f"strata.torch: {tmp_path / 'wrong.yaml'}:2:9" in done.stderr
