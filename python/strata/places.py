"""Places: a kind of memory and a device."""

from __future__ import annotations

from typing import NamedTuple, Union

from . import _abi


class Place(NamedTuple):
    """A kind of memory ("gpu", "managed", "pinned", "host") and a device. `str` is its name: "gpu:0", "pinned"."""

    kind: str
    device: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.device}" if self.kind in ("gpu", "managed") else self.kind

    @property
    def code(self) -> int:
        """The number that the C interface has for it."""
        if self.kind not in _abi.PLACE_KINDS:
            raise ValueError(f"no such kind of memory: {self.kind!r}; there are {', '.join(_abi.PLACE_KINDS)}")
        if not 0 <= self.device <= 0xFFFF:
            raise ValueError(f"no such device: {self.device}")
        return _abi.PLACE_KINDS.index(self.kind) << 16 | self.device

    @classmethod
    def of(cls, place: "PlaceLike") -> "Place":
        """A place from a place, or from its name: "gpu" (device 0), "gpu:1", "pinned"."""
        if isinstance(place, Place):
            return place
        kind, colon, device = str(place).partition(":")
        if kind not in _abi.PLACE_KINDS or (colon and not device.isdecimal()):
            raise ValueError(f"no such place: {place!r}; examples are gpu:0, managed:1, pinned, host")
        return cls(kind, int(device) if colon else 0)

    @classmethod
    def of_code(cls, code: int) -> "Place":
        """The place of a number of the C interface."""
        return cls(_abi.PLACE_KINDS[code >> 16], code & 0xFFFF)


PlaceLike = Union[Place, str]


def gpu(device: int = 0) -> Place:
    """Memory of one device."""
    return Place("gpu", device)


def managed(device: int = 0) -> Place:
    """Memory that migrates between the host and one device on demand."""
    return Place("managed", device)


def pinned() -> Place:
    """Page-locked memory of the host. Its blocks have no owner stream."""
    return Place("pinned")


def host() -> Place:
    """Plain memory of the host."""
    return Place("host")
