"""Converts Python's values to those of the C interface, with one function for each kind of argument.

ctypes silently truncates integers to the width of a field, and list() splits a text into letters. So each value passes through one
of these functions, and all functions of the package refuse the same wrong values with the same exceptions:

    TypeError       the value is of another type: a bool, a float or a text where an integer is needed, a text instead of a list
    ValueError      the type is right, but no such value exists: a negative size, a text with a zero byte
    OverflowError   an integer does not fit into its field
"""

from __future__ import annotations

import numbers
import operator
import os
from typing import Any, Callable, Iterable, List, Mapping, Optional, Sequence, SupportsIndex, TypeVar, Union

PathLike = Union[str, "os.PathLike[str]"]
#: Seconds, microseconds: integers, floats and NumPy's numbers.
Real = Union[int, float]

_Called = TypeVar("_Called", bound=Callable[..., Any])


def _index(value: SupportsIndex, name: str) -> int:
    # A bool has __index__, but True is rarely meant as one byte.
    if not isinstance(value, bool) and type(value).__name__ != "bool_":
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f"{name} must be an integer, not {value!r} ({type(value).__name__})")


def integer(value: SupportsIndex, name: str, bits: int = 64) -> int:
    """Returns an unsigned integer of at most `bits` bits, from an int or another type with __index__, such as NumPy's integers."""
    number = _index(value, name)
    if number < 0:
        raise ValueError(f"{name} is {number}; it cannot be negative")
    if number >> bits:
        raise OverflowError(f"{name} is {number}; it must be below 2**{bits}")
    return number


def signed(value: SupportsIndex, name: str) -> int:
    """Returns a signed integer of 32 bits."""
    number = _index(value, name)
    if not -(2**31) <= number < 2**31:
        raise OverflowError(f"{name} is {number}; it must lie within 32 bits")
    return number


def flag(value: bool, name: str) -> bool:
    """Returns a bool from NumPy's or Python's True or False, or from 1 or 0. Refuses texts, because "no" would count as true."""
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool") or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise TypeError(f"{name} must be True or False, not {value!r} ({type(value).__name__})")


#: Nanoseconds of a unit of time.
_UNITS = {"seconds": 1_000_000_000, "microseconds": 1000}


def nanoseconds(value: Real, name: str, unit: str = "microseconds") -> int:
    """Returns the nanoseconds of a duration that is given in another unit."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number of {unit}, not {value!r} ({type(value).__name__})")
    if value != value or value < 0:
        raise ValueError(f"{name} is {value}; a duration cannot be negative")
    if value * _UNITS[unit] >= 2**64:
        raise OverflowError(f"{name} is {value}; it must be below 2**64 nanoseconds")
    return int(value * _UNITS[unit])


def text(value: str, name: str) -> bytes:
    """Returns the bytes of a text for the C interface. Refuses zero bytes, because C would end the text at the first one."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, not {value!r} ({type(value).__name__})")
    if "\0" in value:
        raise ValueError(f"{name} is {value!r}; a text cannot hold a zero byte")
    return value.encode("utf-8", "surrogateescape")


def text_or_none(value: Optional[str], name: str) -> Optional[bytes]:
    return None if value is None else text(value, name)


def path(value: PathLike, name: str) -> bytes:
    """Returns the name of a file, from a text or a path object."""
    try:
        named = os.fsencode(value)
    except TypeError:
        raise TypeError(f"{name} must be a text or a path, not {value!r} ({type(value).__name__})") from None
    if b"\0" in named:
        raise ValueError(f"{name} is {value!r}; the name of a file cannot hold a zero byte")
    return named


def items(value: Iterable[Any], name: str) -> List[Any]:
    """Returns the items of a list. Refuses a text or a path, although Python could iterate over its letters."""
    if isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be a list; write {name}=[{value!r}]")
    if isinstance(value, (bytes, bytearray, Mapping)):
        raise TypeError(f"{name} must be a list, not {value!r}")
    try:
        return list(value)
    except TypeError:
        raise TypeError(f"{name} must be a list, not {value!r} ({type(value).__name__})") from None


def texts(value: Sequence[str], name: str) -> List[bytes]:
    """Returns the bytes of each text of a list."""
    return [text(item, f"{name}[{i}]") for i, item in enumerate(items(value, name))]


def choice(value: str, name: str, among: Sequence[str]) -> int:
    """Returns the index of a word in a list of allowed words."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, not {value!r} ({type(value).__name__})")
    if value not in among:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(among)}")
    return list(among).index(value)


def function(value: _Called, name: str) -> _Called:
    """Checks a callback now, because an exception in a later call from C has no caller that could catch it."""
    if not callable(value):
        raise TypeError(f"{name} must be a function, not {value!r} ({type(value).__name__})")
    return value


def ref(block: Any, name: str) -> int:
    """Returns the ref of a Block in the library. Refuses a number, because it may be an address."""
    found = getattr(block, "ref", None)
    if not isinstance(found, int):
        raise TypeError(f"{name} must be a Block, not {block!r} ({type(block).__name__})")
    return found


def descriptor(value: Any, name: str) -> int:
    """Returns the descriptor of an open file, from an object with fileno() such as a socket, or from the number itself."""
    fileno = getattr(value, "fileno", None)
    return integer(fileno() if callable(fileno) else value, name, 31)
