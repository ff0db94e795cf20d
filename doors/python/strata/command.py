"""The command `strata` of the wheel, and functions that run it and return its results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, NoReturn, Optional, Sequence, SupportsIndex

from . import _arguments
from ._arguments import PathLike
from .errors import MissingFileError, StrataError, StrategyError, file_error


def command_path() -> str:
    """Returns the path of the command: STRATA_COMMAND if it is set, else the wheel's own command, else the one in PATH."""
    named = os.environ.get("STRATA_COMMAND")
    if named:
        return named
    own = Path(__file__).resolve().parent / "bin" / "strata"
    return str(own) if own.exists() else "strata"


def run(*arguments: str) -> str:
    """Runs the command and returns its output.

    Raises StrategyError for wrong usage or an invalid file, and StrataError if the command fails. The text is the message of the
    command.
    """
    try:
        done = subprocess.run([command_path(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError as error:
        raise MissingFileError("E_IO", f"{command_path()}: no such command; set STRATA_COMMAND to its path", error) from None
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.strip() or f"strata {' '.join(arguments)} exited with status {done.returncode}"
    raise StrategyError("E_STRATEGY", said) if done.returncode == 2 else StrataError("E_INVALID", said)


def run_on_files(options: Sequence[str], names: Sequence[str], files: Sequence[str]) -> str:
    """Calls run() with names after the options. The names are never parsed as options. `files` are the names that are read as
    files: if one of them cannot be opened, the error is also an OSError."""
    try:
        return run(*options, "--", *names)
    except MissingFileError:
        raise
    except StrategyError as error:
        raise file_error(error, *files) or error from None


def compare(
    strategies: Sequence[PathLike],
    traces: Sequence[PathLike],
    *,
    set: Sequence[str] = (),
    device: Optional[str] = None,
    capacity: Optional[str] = None,
    repeat: SupportsIndex = 1,
    check: bool = False,
) -> List[Dict[str, Any]]:
    """Replays each trace under each strategy with `strata compare`. Returns one dictionary for each run (keys: docs/fields.md).

    Args:
        strategies: a list of presets or files.
        traces: a list of files, .csv or .csv.gz (docs/records.md) or any format that the command reads.
        set: options for every strategy that has them, as ["auto_growth.chunk_size=32MiB"].
        device: "sim:h100" or "gpu:0". The default is a GPU if there is one, else sim:h100.
        capacity: memory of simulated devices, as "24GiB".
        repeat: runs of each pair, to measure the time of the host.
        check: runs under the happens-before checker. A hazard raises StrataError.

    Raises:
        MissingFileError: a file does not exist. The error is a StrategyError and a FileNotFoundError.
        StrategyError: an argument or a file is wrong.
    """
    chosen, given = _names(strategies, "strategies"), _names(traces, "traces")
    options = ["compare", "--json=-", f"--repeat={_arguments.integer(repeat, 'repeat')}"]
    options += [f"--set={setting}" for setting in _settings(set)]
    options += [f"--strategy={strategy}" for strategy in chosen]
    options += [] if device is None else [f"--device={_word(device, 'device')}"]
    options += [] if capacity is None else [f"--capacity={_word(capacity, 'capacity')}"]
    options += ["--check"] if _arguments.flag(check, "check") else []
    runs = json.loads(run_on_files(options, given, [*_files(chosen), *given]))["runs"]
    return [dict(one) for one in runs]


def explain(strategy: PathLike, *, set: Sequence[str] = (), short: bool = False) -> str:
    """Returns each stack of a strategy as built, with the origin of every value, as `strata explain` prints them."""
    named = os.fsdecode(_arguments.path(strategy, "strategy"))
    options = ["explain"] + (["--short"] if _arguments.flag(short, "short") else [])
    options += [f"--set={setting}" for setting in _settings(set)]
    return run_on_files(options, [named], _files([named]))


def _word(value: str, name: str) -> str:
    return _arguments.text(value, name).decode()


def _settings(value: Sequence[str]) -> List[str]:
    return [setting.decode() for setting in _arguments.texts(value, "set")]


def _names(value: Sequence[PathLike], name: str) -> List[str]:
    given = [os.fsdecode(_arguments.path(item, f"{name}[{i}]")) for i, item in enumerate(_arguments.items(value, name))]
    if not given:
        raise ValueError(f"{name} is an empty list; name at least one")
    return given


def _files(strategies: Sequence[str]) -> List[str]:
    """Returns the strategies that are files, not presets."""
    return [name for name in strategies if Path(name).suffix in (".yaml", ".yml")]


def main() -> NoReturn:
    """Replaces this process by the command. It is the entry point `strata` of the wheel."""
    path = command_path()
    try:
        os.execvp(path, ["strata", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"strata: {path}: {error.strerror}")
