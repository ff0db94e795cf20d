"""Code that the doors into other libraries share: the facade behind a door, and the switch that turns doors off."""

from __future__ import annotations

import os
import sys
from typing import Any, Optional, Set

from .facade import Facade, StrategyLike, open

#: Lets a door serve a simulated device, for tests only. Real kernels must never use simulated addresses.
ALLOW_SIMULATED = "STRATA_DOORS_ALLOW_SIMULATED"

#: Turns off every door, to find out if Strata causes a fault. The C doors use it too (docs/integrations.md).
BYPASS = "STRATA_BYPASS"
_FALSY = ("", "0", "false", "no", "off")

_said: Set[str] = set()


def bypassed(library: str) -> bool:
    """Returns True if STRATA_BYPASS turns off the door into `library`. Reports it on standard error once for each door."""
    if os.environ.get(BYPASS, "").lower() in _FALSY:
        return False
    if library not in _said:
        _said.add(library)
        print(f"strata: {BYPASS} is set: {library}'s own allocator serves, not Strata", file=sys.stderr)
    return True


def idle_facade() -> Facade:
    """Returns the object that a bypassed door returns in place of its facade. It serves no request and uses no GPU."""
    return open("strata", devices="sim", ignore_environment=True)


def door_facade(strategy: StrategyLike = None, *, devices: str = "gpu", **options: Any) -> Facade:
    """Opens a facade for a door. Raises ValueError if the devices are simulated and ALLOW_SIMULATED is not set."""
    if devices.partition(":")[0] != "gpu" and not os.environ.get(ALLOW_SIMULATED):
        raise ValueError(f"a door serves real GPUs; devices={devices!r} would give made-up addresses to real kernels ({ALLOW_SIMULATED})")
    return open(strategy, devices=devices, **options)


def of_or_open(facade: Optional[Facade], strategy: StrategyLike, *, bypass: bool = False, **options: Any) -> Facade:
    """Returns `facade` if the program gave one, else a new facade, or an idle one if the door is turned off."""
    if facade is None and bypass:
        return idle_facade()
    if facade is None:
        return door_facade(strategy, **options)
    if strategy is not None or options:
        raise TypeError("an open facade already has a strategy")
    return facade
