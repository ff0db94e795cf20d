"""What every door into another library shares: the facade behind it, and the handles of streams."""

from __future__ import annotations

import os
from typing import Any, Optional

from .facade import Facade, StrategyLike, open

#: Lets a door serve a simulated device, whose addresses real kernels must never see. For tests.
ALLOW_SIMULATED = "STRATA_DOORS_ALLOW_SIMULATED"


def door_facade(strategy: StrategyLike = None, *, devices: str = "gpu", **options: Any) -> Facade:
    """A facade for a door. ValueError: the devices are simulated, and ALLOW_SIMULATED is not set."""
    if devices.partition(":")[0] != "gpu" and not os.environ.get(ALLOW_SIMULATED):
        raise ValueError(f"a door serves real GPUs; devices={devices!r} would give made-up addresses to real kernels ({ALLOW_SIMULATED})")
    return open(strategy, devices=devices, **options)


def of_or_open(facade: Optional[Facade], strategy: StrategyLike, **options: Any) -> Facade:
    """The program's own facade, or a new one."""
    if facade is None:
        return door_facade(strategy, **options)
    if strategy is not None or options:
        raise TypeError("a facade that is open has its strategy already")
    return facade
