"""Strata as PyTorch's allocator, for a whole process.

    import strata.torch
    strata.torch.install("mine.yaml")     # before the first use of CUDA

or, for a program that is not changed:  python -m strata.torch --strategy mine.yaml script.py

docs/pytorch.md says what works, and what still raises.
"""

from __future__ import annotations

from typing import Any, Optional

from .._doors import door_facade
from ..facade import Facade, StrategyLike

__all__ = ["facade", "install"]

_facade: Optional[Facade] = None


def install(strategy: StrategyLike = None, *, devices: str = "gpu", **options: Any) -> Facade:
    """Makes Strata PyTorch's allocator until the process ends; takes what strata.open() takes. Answers the facade, for its reports.

    Raises:
        RuntimeError: PyTorch has used CUDA already, or Strata is installed.
        StrategyError, DeviceError: as strata.open().
        ValueError: the devices are simulated.
    """
    import torch

    from . import _pluggable

    global _facade
    opened = door_facade(strategy, devices=devices, **options)
    try:
        _pluggable.install(opened, torch)
    except BaseException:
        opened.close("force")
        raise
    _facade = opened
    return opened


def facade() -> Facade:
    """The facade behind PyTorch. RuntimeError: nothing is installed."""
    if _facade is None:
        raise RuntimeError("strata.torch.install() was not called")
    return _facade
