"""Strata as PyTorch's allocator, for a whole process.

    import strata.torch
    strata.torch.install("mine.yaml", door="whole")     # before the first use of CUDA

or, without a change to the program:  python -m strata.torch --whole --strategy mine.yaml script.py

docs/integrations.md lists the functions that work, and those that still raise.
"""

from __future__ import annotations

import os
import shlex
import warnings
from typing import Any, Optional

from .._doors import bypassed, door_facade, idle_facade
from ..facade import Facade, StrategyLike

__all__ = ["facade", "install"]

_facade: Optional[Facade] = None


def install(
    strategy: StrategyLike = None, *, door: str = "pluggable", pinned: bool = True, devices: str = "gpu", **options: Any
) -> Facade:
    """Makes Strata PyTorch's allocator until the process ends, with the arguments of strata.open(). Returns the facade, for its
    reports.

    Args:
        door: "pluggable" needs no compiler. "whole" is compiled once against the installed PyTorch, and supports everything.
        pinned: if True, the whole door serves pinned tensors too.

    Raises:
        RuntimeError: PyTorch has used CUDA already, Strata is installed already, or the whole door cannot be compiled.
        StrategyError, DeviceError: as in strata.open().
        ValueError: the devices are simulated, or the door does not exist.

    With STRATA_BYPASS in the environment PyTorch keeps its own allocator, and the facade that is returned serves no request.
    """
    import torch

    from . import _pluggable, _whole

    global _facade
    if door not in ("pluggable", "whole"):
        raise ValueError(f"no such door: {door!r}; the doors are pluggable and whole")
    if _facade is not None:
        raise RuntimeError("Strata already is PyTorch's allocator")
    if bypassed("PyTorch"):
        _facade = idle_facade()
        return _facade
    opened = door_facade(strategy, devices=devices, **options)
    try:
        if door == "whole":
            _whole.install(opened, torch, pinned)
        else:
            _pluggable.install(opened, torch)
    except BaseException:
        opened.close("force")
        raise
    _facade = opened
    _warn_of_settings(opened, strategy)
    return opened


#: The variables with the settings of PyTorch's own allocator.
SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")


def _warn_of_settings(opened: Facade, strategy: StrategyLike) -> None:
    """Warns if settings of PyTorch's own allocator are in the environment and the strategy does not come from them."""
    named = os.environ.get("STRATA_STRATEGY") if strategy is None else strategy
    if isinstance(named, str) and named.startswith("import:pytorch"):
        return
    explained = opened.explain()  # contains the variable of each value that was read from one
    for name in SETTINGS:
        value = os.environ.get(name)
        if value and f" {name}:" not in explained:
            warnings.warn(
                f"{name}={value} has no effect on the memory that Strata serves. To use it, give the strategy import:pytorch, or write "
                f"it to a file: strata import pytorch {shlex.quote(value)} > mine.yaml",
                RuntimeWarning,
                stacklevel=3,
            )
            return


def facade() -> Facade:
    """Returns the facade behind PyTorch. Raises RuntimeError if Strata is not installed."""
    if _facade is None:
        raise RuntimeError("strata.torch.install() was not called")
    return _facade
