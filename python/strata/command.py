"""The command `strata` of the wheel: run as it is, or for its JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Union

from .errors import StrataError, StrategyError

PathLike = Union[str, "os.PathLike[str]"]


def command_path() -> str:
    """The command: STRATA_COMMAND if it is set, the wheel's own, else the one in PATH."""
    named = os.environ.get("STRATA_COMMAND")
    if named:
        return named
    own = Path(__file__).resolve().parent / "bin" / "strata"
    return str(own) if own.exists() else "strata"


def run(*arguments: str) -> str:
    """Runs the command; answers what it printed. StrategyError: it was used wrongly, or a file is wrong; StrataError: it failed. The
    text is what the command said."""
    done = subprocess.run([command_path(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.strip() or f"strata {' '.join(arguments)} answered {done.returncode}"
    raise StrategyError("E_STRATEGY", said) if done.returncode == 2 else StrataError("E_INVALID", said)


def compare(
    strategies: Sequence[PathLike],
    traces: Sequence[PathLike],
    *,
    set: Sequence[str] = (),
    device: Optional[str] = None,
    capacity: Optional[str] = None,
    repeat: int = 1,
    check: bool = False,
) -> List[Dict[str, Any]]:
    """Replays each trace under each strategy: `strata compare`. One dictionary a run; docs/fields.md explains the keys.

    Args:
        strategies: presets or files.
        traces: .csv or .csv.gz (docs/trace-format.md).
        set: options of every strategy that has them, "auto_growth.chunk_size=32MiB".
        device: "sim:h100", "gpu:0"; without it a GPU if there is one, else sim:h100.
        capacity: "24GiB", of simulated devices.
        repeat: runs of each, for the host's time.
        check: under the happens-before checker. A hazard makes StrataError.
    """
    arguments = ["compare", "--json", "-", "--repeat", str(repeat)]
    for setting in set:
        arguments += ["--set", setting]
    for strategy in strategies:
        arguments += ["--strategy", os.fspath(strategy)]
    arguments += ["--device", device] if device else []
    arguments += ["--capacity", capacity] if capacity else []
    arguments += ["--check"] if check else []
    runs = json.loads(run(*arguments, *(os.fspath(trace) for trace in traces)))["runs"]
    return [dict(one) for one in runs]


def explain(strategy: PathLike, *, set: Sequence[str] = (), short: bool = False) -> str:
    """Each stack of a strategy as built, every value with where it comes from: `strata explain`."""
    arguments = ["explain"] + (["--short"] if short else [])
    for setting in set:
        arguments += ["--set", setting]
    return run(*arguments, os.fspath(strategy))


def main() -> NoReturn:
    """The wheel's entry point `strata`: becomes the command."""
    path = command_path()
    try:
        os.execvp(path, ["strata", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"strata: {path}: {error.strerror}")
