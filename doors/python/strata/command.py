"""The command `strata` of the wheel: run as it is, or for its JSON."""

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
    """The command: STRATA_COMMAND if it is set, the wheel's own, else the one in PATH."""
    named = os.environ.get("STRATA_COMMAND")
    if named:
        return named
    own = Path(__file__).resolve().parent / "bin" / "strata"
    return str(own) if own.exists() else "strata"


def run(*arguments: str) -> str:
    """Runs the command and returns what it prints.

    StrategyError: wrong usage or an invalid file. StrataError: the command failed. The text is the message of the command.
    """
    try:
        done = subprocess.run([command_path(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError as error:
        raise MissingFileError("E_IO", f"{command_path()}: there is no such command; STRATA_COMMAND may name one", error) from None
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.strip() or f"strata {' '.join(arguments)} answered {done.returncode}"
    raise StrategyError("E_STRATEGY", said) if done.returncode == 2 else StrataError("E_INVALID", said)


def run_on_files(options: Sequence[str], names: Sequence[str], files: Sequence[str]) -> str:
    """run() with names after the options, which are never parsed as options. `files` are the names that are read as files: if one of them
    cannot be opened, the error is also an OSError."""
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
    """Replays each trace under each strategy: `strata compare`. One dictionary a run; docs/fields.md explains the keys.

    Args:
        strategies: a list of presets or files.
        traces: a list of files, .csv or .csv.gz (docs/trace-format.md) or any format that the command reads.
        set: options of every strategy that has them, ["auto_growth.chunk_size=32MiB"].
        device: "sim:h100", "gpu:0"; without it a GPU if there is one, else sim:h100.
        capacity: "24GiB", of simulated devices.
        repeat: runs of each, for the host's time.
        check: under the happens-before checker. A hazard makes StrataError.

    Raises:
        MissingFileError: there is no such file; it is a StrategyError and a FileNotFoundError.
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
    """Each stack of a strategy as built, every value with where it comes from: `strata explain`."""
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
        raise ValueError(f"{name} is an empty list; name one at least")
    return given


def _files(strategies: Sequence[str]) -> List[str]:
    """The strategies that are files, not presets."""
    return [name for name in strategies if Path(name).suffix in (".yaml", ".yml")]


def main() -> NoReturn:
    """The wheel's entry point `strata`: becomes the command."""
    path = command_path()
    try:
        os.execvp(path, ["strata", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"strata: {path}: {error.strerror}")
