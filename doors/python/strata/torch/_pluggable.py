"""The pluggable door. It passes the functions of libstrata_torch.so to PyTorch's CUDAPluggableAllocator."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any, Dict, List

from .. import _library
from .._abi import STATISTICS
from ..facade import Facade
from ..figures import Statistics
from ..places import gpu
from . import _figures

MOST_DEVICES = 16  # the max of a facade

#: The function of the door for each of PyTorch's setters of hooks.
HOOKS = {
    "set_reset_fn": "strata_torch_reset",
    "set_memory_fraction_fn": "strata_torch_memory_fraction",
    "set_base_alloc_fn": "strata_torch_base",
    "set_record_stream_fn": "strata_torch_record_stream",
    "set_begin_allocate_to_pool": "strata_torch_begin_pool",
    "set_end_allocate_to_pool_fn": "strata_torch_end_pool",
    "set_release_pool": "strata_torch_release_pool",
}


def door_path() -> str:
    """Returns the path of libstrata_torch.so, in the folder STRATA_DOORS if it is set, else in the wheel."""
    named = os.environ.get("STRATA_DOORS")
    folder = Path(named) if named else Path(__file__).resolve().parent.parent / "lib"
    return str(folder / "libstrata_torch.so")


class Pluggable:
    """The door's library over an open facade. A process can have one, because the library serves one facade."""

    def __init__(self, facade: Facade) -> None:
        if not os.path.exists(door_path()):
            raise RuntimeError(f"{door_path()} does not exist: the wheel was built without a C++ compiler")
        _library.library()  # the door finds this copy of libstrata by its name
        self.facade = facade
        self.library = ctypes.CDLL(door_path())
        self.library.strata_torch_use.argtypes = [ctypes.c_uint64]
        self.library.strata_torch_use(facade.handle)
        self._begun: Dict[int, Statistics] = {}

    def address(self, function: str) -> int:
        """Returns the address of one of the door's functions."""
        return ctypes.cast(getattr(self.library, function), ctypes.c_void_p).value or 0

    # ---- replacements for functions of torch._C that a pluggable allocator lacks

    def memory_stats(self, device: int) -> Dict[str, Any]:
        figures = (ctypes.c_int64 * 8)()
        if self.library.strata_torch_figures(device, figures):
            raise ValueError(f"no such device: {device}")
        nothing = Statistics((name, 0) for name, _, _ in STATISTICS)
        statistics = self.facade.statistics(gpu(device)) if self.used(device) else nothing
        begun = self._begun.get(device) or nothing
        return _figures.memory_stats(statistics, list(figures), begun)

    def reset_peaks(self, device: int) -> None:
        self.library.strata_torch_reset_peaks(device)

    def used(self, device: int) -> bool:
        """Returns True if the device has served a request. Statistics of another device would open that device."""
        return bool(self.library.strata_torch_used(device))

    def reset_totals(self, device: int) -> None:
        if not self.used(device):
            return
        self._begun[device] = self.facade.statistics(gpu(device))
        self.library.strata_torch_reset_totals(device)

    def memory_fraction(self, device: int) -> float:
        info = self.facade.mem_info(gpu(device))
        return min(1.0, info["limit"] / info["total"])

    def snapshot(self, asked: Any = None) -> Dict[str, Any]:
        """Returns the snapshot of every device. If `asked` begins with a pool's ID, as PyTorch's memory_snapshot() passes it, only
        the chunks of that pool are returned."""
        devices = [device for device in range(MOST_DEVICES) if self.used(device)]
        parts: List[Dict[str, Any]] = []
        for device in devices:
            rows = self.facade.snapshot(gpu(device))
            parts += _figures.segments(rows, device, lambda number, device=device: self.pool_name(device, number))  # type: ignore[misc]
        pool = tuple(asked[:2]) if asked is not None else (0, 0)
        wanted = [part for part in parts if pool == (0, 0) or part["segment_pool_id"] == pool]
        return _figures.snapshot(wanted, max(devices, default=-1) + 1)

    def pool_name(self, device: int, number: int) -> _figures.PoolId:
        told = (ctypes.c_ulonglong * 2)()
        self.library.strata_torch_pool_name(device, ctypes.c_uint64(number), told)
        return told[0], told[1]

    def replacements(self) -> Dict[str, Any]:
        """Returns the replacement for each of these names in torch._C."""
        return {
            "_cuda_memoryStats": self.memory_stats,
            "_cuda_resetPeakMemoryStats": self.reset_peaks,
            "_cuda_resetAccumulatedMemoryStats": self.reset_totals,
            "_cuda_memorySnapshot": self.snapshot,
            "_cuda_getMemoryFraction": self.memory_fraction,
            "_accelerator_getDeviceStats": self.memory_stats,
            "_accelerator_resetPeakStats": self.reset_peaks,
            "_accelerator_resetAccumulatedStats": self.reset_totals,
        }


# PyTorch keeps no reference to the allocator and the door, so this list does.
_kept: List[Any] = []


def install(facade: Facade, torch: Any) -> Pluggable:
    """Makes the door PyTorch's allocator, with every hook that this PyTorch has. Raises RuntimeError if PyTorch has used CUDA
    already."""
    if torch.cuda.is_initialized():
        raise RuntimeError("PyTorch has already allocated memory; call strata.torch.install() before the first use of CUDA")
    door = Pluggable(facade)
    allocator = torch.cuda.memory.CUDAPluggableAllocator(door_path(), "strata_torch_allocate", "strata_torch_free")
    for setter, function in HOOKS.items():
        if hasattr(allocator.allocator(), setter):
            getattr(allocator.allocator(), setter)(door.address(function))
    torch.cuda.memory.change_current_allocator(allocator)
    for name, function in door.replacements().items():
        if hasattr(torch._C, name):
            setattr(torch._C, name, function)
    _kept.extend((allocator, door))
    return door
