"""python -m strata.torch [--strategy NAME|FILE] [--set PATH=VALUE]... [--check] [--report] [--whole] [--module] SCRIPT [ARGUMENT]...

Runs a program with Strata as PyTorch's allocator."""

from __future__ import annotations

import argparse
import gc
import os
import runpy
import sys
from typing import List, Optional

from ..errors import StrataError
from ..facade import Facade
from . import install


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m strata.torch", description="Runs a program with Strata as PyTorch's allocator.")
    made.add_argument("--strategy", metavar="NAME|FILE", help="a preset or a YAML file; else STRATA_STRATEGY, else the preset strata")
    made.add_argument("--set", metavar="PATH=VALUE", action="append", default=[], help="sets an option of the strategy")
    made.add_argument("--whole", action="store_true", help="the whole door: compiled once against this PyTorch, leaves nothing out")
    made.add_argument("--devices", default="gpu", help="as in a strategy (gpu)")
    made.add_argument(
        "--check",
        action="store_true",
        help="asks the driver about every stream and capture, and looks at every structure at the end; a fault makes the status 1",
    )
    made.add_argument("--report", action="store_true", help="prints the figures and chunks at the end, on standard error")
    made.add_argument("--module", action="store_true", help="SCRIPT is a module's name, as with python -m")
    made.add_argument("script", metavar="SCRIPT")
    made.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER)
    return made


def run(script: str, module: bool) -> None:
    """As `python script` and `python -m script` do: modules beside a script are found first."""
    if module:
        runpy.run_module(script, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(script))
        runpy.run_path(script, run_name="__main__")


def checked(facade: Facade) -> int:
    """Looks at every structure, and tells what it found."""
    gc.collect()
    try:
        facade.validate()
    except StrataError as error:
        print(f"strata.torch: {error}", file=sys.stderr)
        return 1
    print("strata.torch: checked, no fault", file=sys.stderr)
    return 0


def main(arguments: Optional[List[str]] = None) -> int:
    told = parser().parse_args(arguments)
    try:
        door = "whole" if told.whole else "pluggable"
        checks = {"check_stream_ids": told.check, "check_captures": told.check}
        facade = install(told.strategy, door=door, devices=told.devices, set=told.set, **checks)
    except (StrataError, RuntimeError, ValueError) as error:
        print(f"strata.torch: {error}", file=sys.stderr)
        return 2
    sys.argv = [told.script, *told.arguments]
    try:
        run(told.script, told.module)
    finally:
        # Also where the program ends by sys.exit() or an exception, which then goes on unless a fault was found.
        if told.report:
            print(facade.report(), file=sys.stderr)
        if told.check and checked(facade):
            sys.exit(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
