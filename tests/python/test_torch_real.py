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
# The whole door is compiled once for each PyTorch, not for each run of the tests.
CACHE = os.environ.get("STRATA_TEST_CACHE")


def has_torch(python):
    found = "import sys; from importlib import util; sys.exit(0 if util.find_spec('torch') else 1)"
    return subprocess.run([python, "-c", found]).returncode == 0


PYTHONS = [python for python in os.environ.get("STRATA_TORCH_PYTHON", sys.executable).split(":") if has_torch(python)]
pytestmark = pytest.mark.skipif(not PYTHONS, reason="no PyTorch is installed here (STRATA_TORCH_PYTHON names a Python that has it)")


@pytest.fixture(scope="module", params=PYTHONS)
def run(request, tmp_path_factory):
    """run(program, arguments): what the program tells, under this PyTorch."""
    folder = tmp_path_factory.mktemp("runtime")
    made = subprocess.run([request.param, str(HERE / "runtime" / "torch_runtime.py"), str(folder)], stdout=subprocess.PIPE, text=True)
    if made.returncode == 77:
        pytest.skip(made.stdout)
    runtime = made.stdout.strip()
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime,
        "LD_LIBRARY_PATH": str(folder),
        "STRATA_FAKE_CUDART": runtime,
        "STRATA_DOORS_ALLOW_SIMULATED": "1",
        "STRATA_DOORS_SOURCE": str(SOURCE),
        "XDG_CACHE_HOME": str(CACHE or folder),
        "PYTHONPATH": f"{SOURCE / 'doors' / 'python'}:{HERE / 'programs'}",
    }

    @functools.lru_cache(maxsize=None)
    def program(*arguments, **more):
        done = subprocess.run(
            [request.param, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=250, env={**environment, **more}
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULTS ")]
        return (json.loads(lines[0][8:]) if lines else None), done

    return program


def results(run, name, **environment):
    told, done = run(str(HERE / "programs" / name), **environment)
    assert told is not None, done.stderr
    return told


def test_tensors_are_strata_s_blocks(run):
    told = results(run, "torch_pluggable.py")
    assert told["owned"] == [MIB, 2 * MIB]
    assert told["empty"] == 0
    assert told["mallocs"] == 0, "PyTorch asked the runtime for memory past the door"
    assert told["live"] in (0, 2)  # until 2.12 two numbers of the random generator stay


def test_installing_twice_is_refused(run):
    told = results(run, "torch_pluggable.py")
    assert told["twice"] == "RuntimeError: Strata already is PyTorch's allocator"
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
    assert told["oom"].startswith("RuntimeError: CUDA out of memory. In gpu:0")
    assert told["after oom"] == "ok"
    assert told["after empty_cache"]
    assert told["fraction"].startswith("RuntimeError: CUDA out of memory")
    assert told.get("fraction told", 0.001) == 0.001


def test_a_graph_has_a_pool_of_its_own(run):
    told = results(run, "torch_pluggable.py")
    assert (told["graph pools"], told["graph kept"], told["graph pool id"], told["graph gone"]) == (1, True, True, 0)


def test_what_still_raises_is_what_the_page_says(run):
    """docs/integrations.md lists these calls in its table of both doors."""
    page = (SOURCE / "docs" / "integrations.md").read_text()
    for call, said in results(run, "torch_pluggable.py")["raises"].items():
        assert said.startswith("RuntimeError: "), f"{call}: {said}"
        assert f"`{call}" in page, call


def test_a_script_runs_unchanged(run, tmp_path):
    script = tmp_path / "script.py"
    (tmp_path / "beside.py").write_text("")
    script.write_text(
        "import beside, sys, torch\n"
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


@pytest.mark.parametrize("program", ["torch_pluggable.py", "torch_whole.py"])
def test_a_device_that_is_not_used_is_not_opened(run, program):
    """A context takes memory: questions about a device must not make one."""
    told = results(run, program, FAKE_CUDART_DEVICES="2")
    assert told["unused"] == ["ok", "ok", "ok", 0]
    assert told["empty_cache"] == "ok"


@pytest.mark.parametrize("options", [(), ("--whole",)])
def test_a_bypass_leaves_pytorch_its_own_allocator(run, tmp_path, options):
    script = tmp_path / "script.py"
    script.write_text("import torch\nprint(torch.cuda.get_allocator_backend(), torch.cuda.memory_allocated())\n")
    _, done = run("-m", "strata.torch", *options, "--strategy", "no/such.yaml", str(script), STRATA_BYPASS="1")
    assert done.stdout == "native 0\n", done.stderr
    assert done.stderr.count("strata: STRATA_BYPASS is set: PyTorch's own allocator serves, not Strata") == 1


@pytest.mark.parametrize("door", ["pluggable", "whole"])
def test_a_facade_closed_under_live_tensors_ends_no_program(run, door):
    told, done = run(str(HERE / "programs" / "torch_closed.py"), door)
    assert done.returncode == 0 and told is not None, done.stderr
    assert done.stderr.count("was closed while tensors were live") == 1
    assert told["recorded"] == told["emptied"] == "ok" and told["alive"]
    assert told["requested"].startswith("RuntimeError: Strata: facade ") and "it was closed" in told["requested"]


# ---- the whole door


@pytest.fixture(scope="module")
def whole(run):
    return results(run, "torch_whole.py")


def test_whole_serves_tensors(whole):
    assert whole["backend"] == "strata"
    assert whole["owned"] == [MIB, 2 * MIB]
    assert whole["twice"] == "RuntimeError: Strata already is PyTorch's allocator"
    assert whole["mallocs"] == 0, "PyTorch asked the runtime for memory past the door"
    assert whole["raw"] == "ok"


def test_whole_has_every_figure(run, whole):
    assert whole["keys"] == results(run, "torch_native.py")["keys"]
    assert whole["allocated"] == [2 * MIB, 3 * MIB]
    assert whole["reserved"][0] == whole["reserved"][1] > 0
    assert whole["counts"] == [1, 2, 2, 1]
    assert whole["after reset"] == [2 * MIB, 0, 0]
    assert whole["summary"] and whole["accelerator"] == 2 * MIB


def test_whole_notes_streams(whole):
    assert whole["streams"] == [1, 1]
    assert whole["foreign"] == "ok"


def test_whole_raises_out_of_memory_with_the_report(whole):
    assert whole["oom"].startswith("OutOfMemoryError: CUDA out of memory. In gpu:0")
    assert "too_large" in whole["oom"]
    assert whole["heard"] == [0, 1 << 40, True]
    assert whole["ooms counted"] == 1
    assert whole["fraction"].startswith("OutOfMemoryError: CUDA out of memory") and "place_limit" in whole["fraction"]
    assert whole.get("fraction told", 0.001) == 0.001
    assert whole["after empty_cache"]


def test_whole_records_history_with_frames(whole):
    assert whole["actions"] == ["segment_map", "alloc", "free_requested", "free_completed", "alloc", "oom", "snapshot"]
    assert whole["chunks told"]
    assert whole["frames"] == ["tensor", "wrapped"]
    assert whole["times rise"]
    assert whole["ring"] == ["free_completed", "snapshot"]
    assert whole["history off"] == []


def test_whole_snapshots_have_pytorch_s_form(run, whole):
    assert whole["snapshot"] == results(run, "torch_native.py")["snapshot"]
    assert whole["live"] and whole["segments"]
    assert whole["live frames"] == [["tensor", "wrapped"]]


def test_whole_keeps_graphs_apart(whole):
    assert whole["graph kept"] and whole["graph pool told"]
    assert whole["live check"] == [True, False, False]
    assert whole["graph gone"] == 0


def test_whole_sets_a_pool_back(whole):
    """As torch.compile(mode="reduce-overhead") does between its graphs."""
    in_pool, more = whole["checkpoint"]
    assert in_pool and more < MIB  # a graph may have a random generator's number of its own, elsewhere
    assert whole["after checkpoint"]


def test_whole_has_mem_pools(whole):
    assert whole["pool uses"] == [1, 2, 1]
    assert whole["in the pool"] == [True, False]
    assert whole["pool serves again"]
    assert whole["pool gone"] == 0
    assert whole["last resort"] == [[True, True, 0, 1, "OutOfMemoryError", "ok"], ["out of memory", 1, 1, "OutOfMemoryError", "ok"]]


def test_whole_has_pools_whose_blocks_are_not_split(whole):
    assert whole.get("no_split", [2, 20, 10, 12, 3, True]) == [2, 20, 10, 12, 3, True]


def test_whole_pins_memory(whole):
    assert whole["pinned"] == [1, True]
    assert whole["host stats"] == 3 * MIB
    assert whole["pinned freed"] == 0


def test_whole_lets_a_forked_worker_go(whole):
    assert whole["forked"] == 7


def test_whole_gives_tensors_to_other_processes(run, whole):
    assert whole["shared"] == ["s", 2 * MIB, 0]
    told = results(run, "torch_ipc.py")
    other = json.loads(told["other"][0][8:])
    assert (other["size"], other["same"], other["somewhere"], other["reserved"]) == (8 * MIB, True, True, 0)
    assert "no live allocation" in other["mine"]
    assert told["short"] == "RuntimeError: Strata: this is not a name of memory of another process"
    assert told["wrong"].startswith("RuntimeError: Strata: shared memory: ")
    assert told["again"], "the name that was told first must hold when the tensor is shared once more"
    assert told["held"]


def test_whole_answers_pytorch_s_own_code(run):
    """cacheInfo, peers, copies between devices, callbacks, annotations: through libc10_cuda, on two devices."""
    told = results(run, "torch_calls.py", FAKE_CUDART_DEVICES="2")
    assert told["devices"] == [4 * MIB, 4 * MIB]
    assert told["places"] == [1, 1]
    assert told["cache info"] and told["cache info limited"]
    assert told["base"] == [True, True]
    assert told["peers"] == 0b10
    assert told["copies"] == [2, 1]
    assert (told["oom"], told["callbacks"] > 0) == ("OutOfMemoryError", True)
    assert told["annotations"] == ["forward"]
    assert told.get("annotated", [True, "weights"]) == [True, "weights"]
    assert told["contexts"] == [["1/0", "1/0", "N/A"], ["N/A", "N/A"]]
    assert told["last"][0] in ("segment_free", "segment_unmap") and told["last"][1] == "snapshot"
    assert told["idle goes"] == 0
    assert told["traced"] >= 3


def test_whole_runs_a_script_unchanged(run, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import torch\nx = torch.empty(1 << 20, device='cuda')\nprint(torch.cuda.get_allocator_backend())\n")
    _, done = run("-m", "strata.torch", "--whole", "--devices", "sim:h100", "--check", str(script))
    assert (done.returncode, done.stdout) == (0, "strata\n"), done.stderr
    assert "strata.torch: checked, no fault" in done.stderr


@pytest.mark.parametrize("door", [[], ["--whole"]])
def test_a_program_is_looked_at_by_guard(run, tmp_path, door):
    """A strategy with `guard` behind a door: the program runs, and what it never freed is told at the end."""
    strategy, script = tmp_path / "guarded.yaml", tmp_path / "script.py"
    strategy.write_text("version: 1\nstrategy: guarded\nstack: [stream_safe, {guard: {}}, auto_growth, system]\n")
    script.write_text(
        "import torch, strata.torch\n"
        "x, y = (torch.empty(1000, device='cuda') for _ in range(2))\n"
        "print(strata.torch.facade().block_of(x.data_ptr()).route())\n"
        "del x\n"
        "strata.torch.facade().close('force')\n"
        "import os; os._exit(0)\n"
    )
    _, done = run("-m", "strata.torch", *door, "--strategy", str(strategy), "--devices", "sim:h100", str(script))
    assert "guard" in done.stdout, done.stderr
    assert "guard" in done.stderr and "4000" in done.stderr


def test_a_door_that_is_none_is_refused(run):
    _, done = run("-c", "import strata.torch; strata.torch.install(door='front', devices='sim')")
    assert "ValueError: no such door: 'front'" in done.stderr
