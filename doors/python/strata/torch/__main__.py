"""python -m strata.torch [--strategy NAME|FILE] [--set PATH=VALUE]... [--check] [--report] [--whole] [--if-possible] [--module] SCRIPT [ARGUMENT]...

Runs a program with Strata as PyTorch's allocator. The program gets everything after SCRIPT unchanged, including `--`."""

from __future__ import annotations

import argparse
import gc
import os
import runpy
import sys
from typing import Any, List, Optional

from ..errors import DeviceError, StrataError
from ..facade import Facade
from . import install


class _Program(argparse.Action):
    """Parses the rest of the line, the script and its arguments. argparse itself would drop the `--` of the script."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, _: Optional[str] = None) -> None:
        program = values[1:] if values[:1] == ["--"] else values
        if not program:
            parser.error("SCRIPT is missing")
        namespace.script, namespace.arguments = program[0], program[1:]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m strata.torch",
        usage="%(prog)s [OPTION]... SCRIPT [ARGUMENT]...",
        description="Runs a program with Strata as PyTorch's allocator.",
        allow_abbrev=False,
    )
    made.add_argument("--strategy", metavar="NAME|FILE", help="a preset or a YAML file; else STRATA_STRATEGY, else the preset strata")
    made.add_argument("--set", metavar="PATH=VALUE", action="append", default=[], help="sets an option of the strategy")
    made.add_argument("--whole", action="store_true", help="the whole door: complete, and compiled once against this PyTorch")
    made.add_argument("--devices", default="gpu", help="as in a strategy (gpu)")
    made.add_argument(
        "--check",
        action="store_true",
        help="checks every stream and capture with the driver, and every structure at the end; a fault sets the exit status to 1",
    )
    made.add_argument("--report", action="store_true", help="prints the figures and chunks at the end, on standard error")
    made.add_argument("--module", action="store_true", help="SCRIPT is a module's name, as with python -m")
    made.add_argument(
        "--if-possible",
        action="store_true",
        help="on a machine where Strata cannot serve, such as one without a GPU, runs the program with PyTorch's own allocator",
    )
    made.add_argument(
        "program", metavar="SCRIPT [ARGUMENT]...", nargs=argparse.REMAINDER, action=_Program, help="the program; its arguments reach it unchanged"
    )
    return made


def run(script: str, module: bool) -> None:
    """Runs a program as `python script` or `python -m script` would. Modules in the folder of a script are found first."""
    if module:
        runpy.run_module(script, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(script))
        runpy.run_path(script, run_name="__main__")


def checked(facade: Facade) -> int:
    """Checks every structure and prints the result. Returns 0, or 1 if there is a fault."""
    gc.collect()
    try:
        facade.validate()
    except StrataError as error:
        print(f"strata.torch: {error}", file=sys.stderr)
        return 1
    print("strata.torch: checked, no fault", file=sys.stderr)
    return 0


def installed(told: argparse.Namespace) -> Optional[Facade]:
    """Returns the facade for PyTorch, or None if this machine cannot have one and the program should run without it."""
    checks = {"check_stream_ids": told.check, "check_captures": told.check}
    try:
        return install(told.strategy, door="whole" if told.whole else "pluggable", devices=told.devices, set=told.set, **checks)
    except (DeviceError, RuntimeError) as error:
        # An invalid strategy is an error on any machine; a missing device or compiler is not.
        if not told.if_possible:
            raise
        reason = str(error).splitlines()[0]
        print(f"strata.torch: {told.script} runs with PyTorch's own allocator: {reason}", file=sys.stderr)
        return None


def main(arguments: Optional[List[str]] = None) -> int:
    told = parser().parse_args(arguments)
    try:
        facade = installed(told)
    except (StrataError, RuntimeError, ValueError) as error:
        print(f"strata.torch: {error}", file=sys.stderr)
        return 2
    sys.argv = [told.script, *told.arguments]
    try:
        run(told.script, told.module)
    finally:
        # This also runs if the program ends by sys.exit() or an exception, which then continues unless a fault was found.
        if facade is not None and told.report:
            print(facade.report(), file=sys.stderr)
        if facade is not None and told.check and checked(facade):
            sys.exit(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
