"""The pluggable door: the functions of libstrata_torch.so, handed to PyTorch's CUDAPluggableAllocator."""

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

MOST_DEVICES = 16  # of a facade

#: PyTorch's setter of a hook: the function of the door.
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
    """libstrata_torch.so: in the folder that STRATA_DOORS names, else the wheel's."""
    named = os.environ.get("STRATA_DOORS")
    folder = Path(named) if named else Path(__file__).resolve().parent.parent / "lib"
    return str(folder / "libstrata_torch.so")


class Pluggable:
    """The door's library over an open facade. One in a process: the library serves one facade."""

    def __init__(self, facade: Facade) -> None:
        if not os.path.exists(door_path()):
            raise RuntimeError(f"{door_path()} is not there: the wheel was built without a C++ compiler")
        _library.library()  # the door finds this copy of libstrata by its name
        self.facade = facade
        self.library = ctypes.CDLL(door_path())
        self.library.strata_torch_use.argtypes = [ctypes.c_uint64]
        self.library.strata_torch_use(facade.handle)
        self._begun: Dict[int, Statistics] = {}

    def address(self, function: str) -> int:
        """The address of one of the door's functions."""
        return ctypes.cast(getattr(self.library, function), ctypes.c_void_p).value or 0

    # ---- what takes the place of functions of torch._C that a pluggable allocator has not

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
        """Whether anything was served there. A question about another device would open it."""
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
        """Of every device; of one pool's chunks if `asked` begins with a pool's id, as PyTorch's memory_snapshot() passes it."""
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
        """Names in torch._C: what answers in their place."""
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


# PyTorch keeps no reference of its own.
_kept: List[Any] = []


def install(facade: Facade, torch: Any) -> Pluggable:
    """Makes the door PyTorch's allocator, with every hook that this PyTorch has. RuntimeError: PyTorch has memory already."""
    if torch.cuda.is_initialized():
        raise RuntimeError("strata.torch.install() comes before the first use of CUDA: PyTorch has allocated already")
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
