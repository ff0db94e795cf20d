"""python -m strata.torch, its cache of compiled doors, and PyTorch's own settings. A stand-in replaces PyTorch."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import strata
import strata.torch
from strata import _cache
from strata.torch.__main__ import parser

SOURCE = Path(os.environ["STRATA_SOURCE"])
TORCH = """
from types import SimpleNamespace as _N

class _Allocator:
    def __init__(self, *_): pass
    def allocator(self): return self

_C = _N()
memory = _N(CUDAPluggableAllocator=_Allocator, change_current_allocator=lambda _: None)
cuda = _N(is_initialized=lambda: False, memory=memory)
"""
SCRIPT = "import json, sys, strata.torch\nprint(json.dumps([sys.argv, strata.torch._facade is not None]))\n"

pytestmark = pytest.mark.skipif(
    not (Path(os.environ["STRATA_DOORS"]) / "libstrata_torch.so").exists(), reason="the doors into PyTorch were not built"
)


@pytest.fixture
def run(tmp_path):
    """run(arguments): what the script printed, and the ended process."""
    (tmp_path / "torch.py").write_text(TORCH)
    (tmp_path / "script.py").write_text(SCRIPT)

    def program(*arguments, **environment):
        inherited = {name: value for name, value in os.environ.items() if name not in (*strata.torch.SETTINGS, "STRATA_STRATEGY")}
        whole = {**inherited, "PYTHONPATH": f"{SOURCE / 'doors' / 'python'}:{tmp_path}", "STRATA_DOORS_ALLOW_SIMULATED": "1", **environment}
        command = [sys.executable, "-m", "strata.torch", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, env=whole)
        return (json.loads(done.stdout) if done.stdout else None), done

    return program


# ---- the command line


PROGRAMS = [
    (["script.py"], []),
    (["script.py", "--", "--foo"], ["--", "--foo"]),
    (["script.py", "--foo", "--", "x"], ["--foo", "--", "x"]),
    (["--", "script.py", "--report"], ["--report"]),
    (["--", "script.py", "--", "--foo"], ["--", "--foo"]),
    (["script.py", "--report", "--whole", "--set", "a=b", "--help"], ["--report", "--whole", "--set", "a=b", "--help"]),
    (["script.py", "", "-", "--"], ["", "-", "--"]),
]


@pytest.mark.parametrize("options", [[], ["--report"], ["--set", "a=b", "--strategy=mine.yaml"]])
@pytest.mark.parametrize("line, arguments", PROGRAMS)
def test_what_follows_the_script_is_the_script_s(options, line, arguments):
    told = parser().parse_args([*options, *line])
    assert (told.script, told.arguments) == ("script.py", arguments)
    assert told.report == ("--report" in options) and not told.whole


def test_without_a_script_there_is_nothing_to_run(capsys):
    for line in ([], ["--"], ["--report"], ["--report", "--"]):
        with pytest.raises(SystemExit):
            parser().parse_args(line)
        assert "SCRIPT is missing" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parser().parse_args(["--repor", "script.py"])  # abbreviations are refused, because later options could make them ambiguous


def test_the_script_sees_its_arguments(run):
    told, done = run("--devices", "sim:h100", "script.py", "--", "--foo")
    assert told == [["script.py", "--", "--foo"], True], done.stderr


# ---- a machine without a GPU


NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "STRATA_DOORS_ALLOW_SIMULATED": ""}


def test_a_program_may_run_without_a_gpu(run):
    told, done = run("--devices", "gpu:15", "--if-possible", "--report", "--check", "script.py", "5", **NO_GPU)
    assert told == [["script.py", "5"], False] and done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("strata.torch: script.py runs with PyTorch's own allocator: ")
    told, done = run("--devices", "gpu:15", "script.py", **NO_GPU)
    assert told is None and done.returncode == 2


def test_a_wrong_strategy_is_an_error_everywhere(run):
    for arguments in (["--strategy", "no-such"], ["--strategy", "nowhere.yaml"], ["--set", "no.such=1"], ["--devices", "sim"]):
        devices = [] if "--devices" in arguments else ["--devices", "gpu:15"]
        told, done = run("--if-possible", *devices, *arguments, "script.py", **NO_GPU)
        assert told is None and done.returncode == 2, done.stderr


def test_where_it_is_possible_strata_serves(run):
    told, done = run("--if-possible", "--devices", "sim:h100", "script.py")
    assert told == [["script.py"], True] and done.stderr == ""


# ---- PyTorch's own settings


@pytest.mark.parametrize("name", strata.torch.SETTINGS)
def test_settings_of_pytorch_s_allocator_are_not_ignored_in_silence(run, name):
    value = "max_split_size_mb:128,expandable_segments:True"
    told, done = run("--devices", "sim:h100", "script.py", **{name: value})
    assert told[1] and done.stderr.count("RuntimeWarning") == 1
    assert f"{name}={value} has no effect" in done.stderr and f"strata import pytorch {value} > mine.yaml" in done.stderr
    assert run("--devices", "sim:h100", "script.py", **{name: ""})[1].stderr == ""


def test_settings_that_the_strategy_comes_from_are_used(run, tmp_path):
    (tmp_path / "mine.yaml").write_text("strategy: mine\nextends: import:pytorch\n")
    value = {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128"}
    for strategy in ("import:pytorch", "import:pytorch@2.9", "mine.yaml"):
        assert run("--devices", "sim:h100", "--strategy", strategy, "script.py", **value)[1].stderr == ""
    assert run("--devices", "sim:h100", "script.py", STRATA_STRATEGY="import:pytorch", **value)[1].stderr == ""
    unused = {"PYTORCH_CUDA_ALLOC_CONF": "pinned_use_background_threads:True"}  # the import reports it itself
    assert "has no effect" not in run("--devices", "sim:h100", "--strategy", "import:pytorch@2.9", "script.py", **unused)[1].stderr


def test_several_settings_are_one_warning(run):
    values = dict.fromkeys(strata.torch.SETTINGS, "expandable_segments:True")
    assert run("--devices", "sim:h100", "script.py", **values)[1].stderr.count("has no effect") == 1


# ---- the cache


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "strata" / "door"


def write(text, made=None):
    def make(path):
        Path(path).write_text(text)
        if made is not None:
            made.append(path)

    return make


def test_a_file_is_made_once(cache):
    made = []
    for _ in range(3):
        path = _cache.cached("door", "libx.so", write("one", made))
        assert path == cache / "libx.so" and path.read_text() == "one"
    assert len(made) == 1 and sorted(found.name for found in cache.iterdir()) == [".lock", "libx.so"]
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700 and stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_file_that_others_may_write_is_made_anew(cache, capfd):
    for spoil in (lambda path: path.chmod(0o720), lambda path: path.chmod(0o702), lambda path: (path.unlink(), path.symlink_to("/etc/passwd"))):
        path = _cache.cached("door", "libx.so", write("one"))
        spoil(path)
        assert _cache.cached("door", "libx.so", write("two")).read_text() == "two"
        assert not path.is_symlink() and "strata: rebuilding " in capfd.readouterr().err
        path.unlink()


def test_a_file_of_another_user_is_made_anew(cache, capfd):
    path = _cache.cached("door", "libx.so", write("one"))
    try:
        os.chown(path, 12345, -1)
    except PermissionError:
        pytest.skip("only root can give a file to another user")
    assert _cache.cached("door", "libx.so", write("two")).read_text() == "two"
    assert "belongs to user 12345" in capfd.readouterr().err and path.stat().st_uid == os.geteuid()


def test_a_folder_of_another_user_is_not_used(cache, capfd):
    _cache.cached("door", "libx.so", write("one"))
    for folder in (cache, cache.parent):
        try:
            os.chown(folder, 12345, -1)
        except PermissionError:
            pytest.skip("only root can give a folder to another user")
        path = _cache.cached("door", "libx.so", write("two"))
        os.chown(folder, os.geteuid(), -1)
        assert cache not in path.parents and path.read_text() == "two"
        assert f"{folder} belongs to user 12345" in capfd.readouterr().err


def test_a_link_of_another_user_is_not_followed(cache, tmp_path, capfd):
    (tmp_path / "own").mkdir(mode=0o700)
    cache.parent.mkdir()
    cache.symlink_to(tmp_path / "own")
    assert _cache.cached("door", "libx.so", write("one")).parent == cache  # the user's own link
    try:
        os.lchown(cache, 12345, -1)
    except PermissionError:
        pytest.skip("only root can give a link to another user")
    assert _cache.cached("door", "libx.so", write("two")).read_text() == "two"
    assert f"{cache} belongs to user 12345" in capfd.readouterr().err


def test_a_process_of_another_user_does_not_use_the_folder(cache, monkeypatch, capfd):
    """The situation under sudo, which keeps HOME."""
    _cache.cached("door", "libx.so", write("one"))
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    path = _cache.cached("door", "libx.so", write("two"))
    assert cache not in path.parents and path.read_text() == "two"
    assert f"belongs to user {user}, but this process runs as user {user + 1}" in capfd.readouterr().err


def test_a_folder_that_others_may_write_is_closed_to_them(cache):
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    cache.parent.chmod(0o775)
    assert _cache.cached("door", "libx.so", write("one")) == cache / "libx.so"
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (cache, cache.parent)] == [0o755, 0o755]


def test_a_cache_that_cannot_be_written_is_replaced_by_a_private_folder(tmp_path, monkeypatch, capfd):
    (tmp_path / "file").write_text("")
    for name in (str(tmp_path / "file"), "/proc/nowhere", "/dev/null"):
        monkeypatch.setenv("XDG_CACHE_HOME", name)
        path = _cache.cached("door", "libx.so", write("one"))
        assert path.read_text() == "one" and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert f"libx.so is built in {path.parent} for this process only: " in capfd.readouterr().err
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "file" / "home"))
    assert _cache.cached("door", "libx.so", write("one")).read_text() == "one"


def test_a_private_folder_goes_with_its_process(tmp_path):
    program = "import sys\nfrom strata import _cache\nprint(_cache.cached('d', 'libx.so', lambda path: open(path, 'w').close()))"
    whole = {**os.environ, "PYTHONPATH": str(SOURCE / "doors" / "python"), "XDG_CACHE_HOME": "/proc/nowhere", "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=whole, timeout=60)
    assert done.stdout.startswith(str(tmp_path)) and list(tmp_path.iterdir()) == []


def test_what_cannot_be_made_leaves_nothing(cache):
    def fail(path):
        Path(path).write_text("half")
        raise RuntimeError("does not compile")

    with pytest.raises(RuntimeError, match="does not compile"):
        _cache.cached("door", "libx.so", fail)
    assert [found.name for found in cache.iterdir()] == [".lock"]
    assert _cache.cached("door", "libx.so", write("one")).read_text() == "one"


RANK = """
import os, sys, time
from strata import _cache

def make(path):
    with open(sys.argv[1], "a") as log: log.write("made\\n")
    for part in ("first ", "second"):
        with open(path, "a") as file: file.write(part)
        time.sleep(0.05)

print(open(_cache.cached("door", "libx.so", make)).read())
"""


def test_four_ranks_with_a_cold_cache_make_it_once(tmp_path):
    whole = {**os.environ, "PYTHONPATH": str(SOURCE / "doors" / "python"), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", RANK, str(tmp_path / "log")]
    ranks = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=whole) for _ in range(4)]
    assert [rank.communicate(timeout=60) for rank in ranks] == [("first second\n", "")] * 4
    assert (tmp_path / "log").read_text() == "made\n"


def test_the_whole_door_is_kept_in_the_cache(cache, monkeypatch):
    """A stand-in for the compiler writes the file; the second time nothing is compiled."""
    import types

    from strata.torch import _whole

    torch = types.SimpleNamespace(__version__="2.11.0", __file__="/x/torch/__init__.py")
    compiled = []
    monkeypatch.setattr(_whole, "command", lambda torch, path: compiled.append(path) or ["sh", "-c", f"echo door > '{path}'"])
    monkeypatch.setenv("STRATA_DOORS_SOURCE", str(SOURCE))
    path = _whole.build(torch)
    assert path == _whole.build(torch) and path.read_text() == "door\n" and len(compiled) == 1
    assert path.parent.parent == cache.parent and path.parent.name.startswith("torch-2.11.0-")
    torch.__version__ = "2.12.0"
    assert _whole.build(torch) != path and len(compiled) == 2
    monkeypatch.setattr(_whole, "command", lambda torch, path: ["sh", "-c", "echo wrong; exit 1"])
    torch.__version__ = "2.13.0"
    with pytest.raises(RuntimeError, match="does not compile against PyTorch 2.13.0:\nwrong"):
        _whole.build(torch)
