"""The command of the wheel, lists, and what the package says where nothing can be loaded."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import strata
from strata import command

SOURCE = Path(os.environ["STRATA_SOURCE"])
TRACE = SOURCE / "traces" / "tinytorch-mnist.csv"


def python(*arguments, **environment):
    """Another Python with the package; what it printed and answered."""
    whole = {**os.environ, "PYTHONPATH": str(SOURCE / "doors" / "python"), **environment}
    return subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=whole)


def test_compare_answers_the_runs():
    runs = strata.compare(["paddle", "strata"], [TRACE], device="sim:h100", set=["auto_growth.chunk_size=20MiB"])
    assert [run["label"] for run in runs] == ["paddle", "strata"]
    assert runs[0]["options"] == {"auto_growth.chunk_size": "20MiB"}
    assert runs[1]["peak_reserved_bytes"] < runs[0]["peak_reserved_bytes"]
    assert runs[0]["operations"] == 97326


def test_explain_tells_where_values_come_from():
    assert "chunk_size               32MiB" in strata.explain("paddle", set=["auto_growth.chunk_size=32MiB"])
    assert len(strata.explain("paddle", short=True)) < len(strata.explain("paddle"))


def test_what_the_command_says_is_the_error():
    with pytest.raises(strata.StrategyError, match="no-such"):
        strata.explain("no-such")
    with pytest.raises(strata.StrategyError, match="nowhere.csv"):
        strata.compare(["strata"], ["nowhere.csv"], device="sim:h100")
    with pytest.raises(strata.StrataError, match="hazard"):
        strata.compare(["paddle"], [SOURCE / "traces" / "streams-prefetch.csv.gz"], device="sim:h100", check=True, set=["stream_safe.event=use"])


def test_lists():
    assert "strata" in strata.presets() and "pytorch" in strata.presets()
    assert "auto_growth" in strata.layers()
    assert strata.version().count(".") == 2


def test_the_entry_point_is_the_command():
    done = python("-c", "import sys; sys.argv = ['', 'version']; from strata.command import main; main()")
    assert (done.returncode, done.stdout.strip()) == (0, strata.version())
    done = python("-c", "from strata.command import main; main()", STRATA_COMMAND="/nowhere/strata")
    assert done.returncode == 1 and "/nowhere/strata" in done.stderr
    assert command.command_path() == os.environ["STRATA_COMMAND"]


def test_no_library_is_told_by_name():
    done = python("-c", "import strata; strata.version()", STRATA_LIBRARY="/nowhere/libstrata.so")
    assert done.returncode == 1
    assert "ImportError: cannot load libstrata" in done.stderr and "/nowhere/libstrata.so" in done.stderr


def test_the_library_that_is_named_is_loaded():
    assert strata.library_path() == os.environ["STRATA_LIBRARY"]


# ---- names are names


NAMED_AS_OPTIONS = ["--allow-code", "--report=injected.html", "--json", "--json=injected.json", "-h", "--help", "--", "--strategy", "-"]
EVIL = """#include <stdio.h>
__attribute__((constructor)) static void loaded(void) {
    FILE *file = fopen("LOADED", "w");
    if (file) fclose(file);
}
"""


def compile_library(path, source):
    command = ["cc", "-shared", "-fPIC", "-xc", "-", "-o", path]
    if not shutil.which("cc") or subprocess.run(command, input=source, text=True, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("there is no C compiler")


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    path = tmp_path_factory.mktemp("evil") / "evil.so"
    compile_library(path, EVIL)
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch, evil):
    """A folder with a trace, and a strategy that would load code."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(evil, "evil.so")
    Path("evil.yaml").write_text("version: 1\nstrategy: evil\nload: [./evil.so]\nextends: strata\n")
    Path("run.csv").write_text("op,id,size,stream,time_us\nalloc,1,64,0,0\nfree,1,0,0,1\n")
    yield tmp_path
    assert {path.name for path in tmp_path.iterdir()} & {"LOADED", "injected.html", "injected.json"} == set()


@pytest.mark.parametrize("name", NAMED_AS_OPTIONS)
def test_a_name_is_not_an_option(folder, name):
    for call in (
        lambda: strata.compare(["evil.yaml"], [name, "run.csv"], device="sim:h100"),
        lambda: strata.compare(["evil.yaml", name], ["run.csv"], device="sim:h100"),
        lambda: strata.compare(["strata", name], ["run.csv"], device="sim:h100"),
        lambda: strata.compare(["strata"], ["run.csv"], set=[name], device="sim:h100"),
        lambda: strata.compare(["strata"], ["run.csv"], device=name),
        lambda: strata.compare(["strata"], ["run.csv"], device="sim:h100", capacity=name),
        lambda: strata.explain(name),
        lambda: strata.explain("evil.yaml", set=[name]),
    ):
        with pytest.raises(strata.StrategyError):
            call()


@pytest.mark.parametrize("name", [*NAMED_AS_OPTIONS, "run me.csv", "a;b.csv"])
def test_files_may_have_such_names(folder, name):
    os.rename("run.csv", name)
    Path("-s.yaml").write_text("strategy: mine\nextends: strata\n")
    (run,) = strata.compare(["./-s.yaml"], [name], device="sim:h100")
    assert run["operations"] == 2
    assert strata.compare(["-s.yaml"], [name], device="sim:h100")[0]["label"] == run["label"]
    assert "strategy mine" in strata.explain("-s.yaml")


def test_an_empty_list_names_nothing():
    for lists in ([], ["run.csv"]), (["strata"], []):
        with pytest.raises(ValueError, match="is an empty list"):
            strata.compare(*lists)


def test_a_command_that_does_not_exist_is_told(monkeypatch):
    monkeypatch.setenv("STRATA_COMMAND", "/nowhere/strata")
    with pytest.raises(FileNotFoundError, match="STRATA_COMMAND") as raised:
        strata.explain("strata")
    assert raised.value.filename == "/nowhere/strata"


# ---- the package


def test_the_module_is_the_command():
    done = python("-m", "strata", "version")
    assert (done.returncode, done.stdout.strip()) == (0, strata.version())
    done = python("-m", "strata", "explain", "--", "no-such")
    assert done.returncode == 2 and "no-such" in done.stderr
    assert python("-m", "strata", "help").stdout == python("-m", "strata", "--help").stdout


def test_the_package_has_a_version():
    assert strata.__version__ == strata.version()
    assert getattr(strata, "no_such_name", None) is None
    done = python("-c", "import strata; print(strata.open)", STRATA_LIBRARY="/nowhere/libstrata.so")
    assert done.returncode == 0  # the library is loaded by the first call


def test_another_library_is_told_by_name(tmp_path):
    header = (SOURCE / "include" / "strata" / "strata.h").read_text()
    number = int(header.split("STRATA_ABI_VERSION")[1].split()[0])
    functions = 'const char *strata_version(void) { return "7.8.9"; }\nunsigned strata_abi_version(void) { return %d; }\n'
    for name, source, text in (
        ("other", "int other;", "it is another library: it has no function strata_abi_version()"),
        ("newer", functions % (number + 1), f"it is libstrata 7.8.9 with the ABI {number + 1}, and this package needs the ABI {number}"),
        ("older", functions % number, "it is libstrata 7.8.9 without strata_status_name(), which this package needs"),
    ):
        path = tmp_path / f"lib{name}.so"
        compile_library(path, source)
        done = python("-c", "import strata; strata.version()", STRATA_LIBRARY=str(path))
        assert done.returncode == 1 and f"{path}: {text}" in done.stderr, done.stderr
    text = tmp_path / "text.so"
    text.write_text("no library")
    assert f"{text}: " in python("-c", "import strata; strata.version()", STRATA_LIBRARY=str(text)).stderr
