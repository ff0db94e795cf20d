"""Runs the Python examples of a documentation page, in the order of the page.

    python pages.py PAGE [COMMAND]...      in an empty folder; COMMAND: a subcommand of `$ strata` whose lines also run

Files between fences are written, programs are run by this Python, and lines `python -m strata.torch` are run with --if-possible, so that no GPU
is needed. The stand-in for PyTorch does nothing. The first failure ends the run. Parts after the first C example are not run.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

TORCH = """
from types import SimpleNamespace as _N
import builtins
builtins.train_one_step = lambda: None
cuda = _N(memory=_N(_record_memory_history=lambda **_: None, _dump_snapshot=lambda path: None))
"""
ITEM = re.compile(r"^```(?P<kind>\w+) ?(?P<name>\S*)\n(?P<text>.*?)^```$|^    (?P<line>(?:\$ strata|python -m strata\.torch) [^\n]*)$", re.S | re.M)


def items(page):
    """(kind, name, text) of each fence, and ("line", "", text) of each command, up to the first C."""
    for found in ITEM.finditer(page.read_text()):
        if found["kind"] in ("c", "cpp"):
            return
        yield (found["kind"], found["name"], found["text"]) if found["kind"] else ("line", "", found["line"])


def execute(command, **options):
    print("+", command if isinstance(command, str) else " ".join(command), flush=True)
    subprocess.run(command, check=True, **options)


def run(page, commands):
    """Runs the page in the current folder; returns how many programs and lines it has run."""
    tree = Path(__file__).resolve().parents[2]
    count = 0
    Path("torch.py").write_text(TORCH)
    Path("train.py").write_text("import sys\nassert sys.argv[1:] in ([], ['--epochs', '1'])\n")
    if not Path("traces").exists():
        Path("traces").symlink_to(tree / "traces")
    for kind, name, text in items(page):
        if kind == "line" and text.startswith("python -m strata.torch "):
            no_gpu = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
            execute([sys.executable, "-m", "strata.torch", "--if-possible", *text.split()[3:]], env=no_gpu)
        elif kind == "line" and text.split()[2] in commands:
            execute(f"{sys.executable} -m {text[2:]}", shell=True)
        elif kind == "python":
            name = name or f"program{count}.py"
            Path(name).write_text(text)
            execute([sys.executable, name])
        else:
            if name:
                Path(name).write_text(text)
            continue
        count += 1
    return count


if __name__ == "__main__":
    print(run(Path(sys.argv[1]).resolve(), sys.argv[2:]), "run")
