"""Places: a kind of memory and a device."""

from __future__ import annotations

from typing import NamedTuple, SupportsIndex, Union

from . import _abi, _arguments


class Place(NamedTuple):
    """A kind of memory ("gpu", "managed", "pinned", "host") and a device. `str` is its name: "gpu:0", "pinned"."""

    kind: str
    device: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.device}" if self.kind in ("gpu", "managed") else self.kind

    @property
    def code(self) -> int:
        """The number of the place in the C interface."""
        kind = _arguments.choice(self.kind, "the kind of a place", _abi.PLACE_KINDS)
        device = _arguments.integer(self.device, "the device of a place")
        if device > 0xFFFF:
            raise ValueError(f"no such device: {device}")
        return kind << 16 | device

    @classmethod
    def of(cls, place: "PlaceLike") -> "Place":
        """Returns a place from a place, or from its name: "gpu" (device 0), "gpu:1", "pinned"."""
        if isinstance(place, Place):
            return cls.of_code(place.code)  # the code refuses invalid places
        if not isinstance(place, str):
            raise TypeError(f"a place must be a Place or a text such as gpu:0, not {place!r} ({type(place).__name__})")
        kind, colon, device = place.partition(":")
        if kind not in _abi.PLACE_KINDS or (colon and not (device.isascii() and device.isdecimal())):
            raise ValueError(f"no such place: {place!r}; examples are gpu:0, managed:1, pinned, host")
        return cls(kind, int(device) if colon else 0)

    @classmethod
    def of_code(cls, code: int) -> "Place":
        """Returns the place of a number of the C interface."""
        return cls(_abi.PLACE_KINDS[code >> 16], code & 0xFFFF)


PlaceLike = Union[Place, str]


def gpu(device: SupportsIndex = 0) -> Place:
    """Returns the place for memory of one device."""
    return _of_device("gpu", device)


def managed(device: SupportsIndex = 0) -> Place:
    """Returns the place for memory that migrates between the host and one device on demand."""
    return _of_device("managed", device)


def _of_device(kind: str, device: SupportsIndex) -> Place:
    place = Place(kind, _arguments.integer(device, "device"))
    return Place.of_code(place.code)  # the code refuses devices that do not exist


def pinned() -> Place:
    """Returns the place for page-locked memory of the host. Its blocks have no owner stream."""
    return Place("pinned")


def host() -> Place:
    """Returns the place for plain memory of the host."""
    return Place("host")
