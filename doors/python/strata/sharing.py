"""Memory of other GPUs and of other processes, and memory that is registered with hardware.

    with block.export() as shared:          # in the process that has the memory
        shared.send(socket)

    with strata.Shared.receive(socket) as shared, s.import_shared(shared) as imported:      # in another process
        ...                                 # use imported.ptr
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, SupportsIndex

from . import _abi, _arguments, _handle
from ._library import library
from .errors import check
from .places import Place, PlaceLike, gpu

if TYPE_CHECKING:
    from .facade import Facade


class Shared(_handle.ProcessObject):
    """A block that can be sent to another process. It owns file descriptors until close(), the end of a `with` statement, or
    collection.

    Attributes:
        size: bytes of the block.
        offset: offset of the block in its first segment.
        device: device of the memory, as numbered in the process that exported it.
        count: number of its segments, with one descriptor each.
    """

    __slots__ = ("struct",)

    def __init__(self) -> None:
        self.struct = _abi.Shared()

    @property
    def size(self) -> int:
        return int(self.struct.size)

    @property
    def offset(self) -> int:
        return int(self.struct.offset)

    @property
    def device(self) -> int:
        return int(self.struct.device)

    @property
    def count(self) -> int:
        return int(self.struct.count)

    def send(self, socket: Any) -> None:
        """Sends the block and its descriptors over a connected Unix socket."""
        check(library().strata_share_send(_arguments.descriptor(socket, "socket"), ctypes.byref(self.struct)))

    @staticmethod
    def receive(socket: Any) -> "Shared":
        """Receives a block from a connected Unix socket."""
        number, shared = _arguments.descriptor(socket, "socket"), Shared()
        check(library().strata_share_receive(number, ctypes.byref(shared.struct)))
        return shared

    def __bytes__(self) -> bytes:
        """Returns the message for fetch() in another process of the same user. It is valid while this process keeps the descriptors
        open."""
        return bytes(self.struct)

    @staticmethod
    def fetch(message: bytes, process: SupportsIndex) -> "Shared":
        """Returns the block of a message, bytes(shared) of another process, and duplicates its descriptors. `process` is the ID of
        that process."""
        if not isinstance(message, (bytes, bytearray, memoryview)):
            raise TypeError(f"message must be bytes, not {type(message).__name__}")
        number, data = _arguments.integer(process, "process"), bytes(message)
        if len(data) != ctypes.sizeof(_abi.Shared):
            raise ValueError(f"message has {len(data)} bytes, but the message of a block has {ctypes.sizeof(_abi.Shared)}")
        shared, told = Shared(), _abi.Shared.from_buffer_copy(data)
        check(library().strata_share_fetch(number, ctypes.byref(told)))
        shared.struct = told  # from here on the descriptors belong to this process
        return shared

    def close(self) -> None:
        """Closes the descriptors. A second call does nothing."""
        library().strata_shared_close(ctypes.byref(self.struct))

    def __enter__(self) -> "Shared":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self.count:
            self.close()


class Imported(_handle.ProcessObject):
    """A block of another process. It is mapped here until end() or the end of a `with` statement.

    Attributes:
        ptr: the address of the block in this process.
        size: bytes of the block.
    """

    __slots__ = ("facade", "ptr", "size", "id")

    def __init__(self, facade: "Facade", struct: _abi.Imported) -> None:
        self.facade = facade
        self.ptr: int = struct.ptr or 0
        self.size: int = struct.size
        self.id: int = struct.id

    def end(self) -> None:
        """Ends the use of the block."""
        check(library().strata_import_end(self.facade.handle, self.id))

    def __enter__(self) -> "Imported":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class Registration(_handle.ProcessObject):
    """Memory that stays in place, from Block.register() to unregister() or the end of a `with` statement.

    Attributes:
        ptr, size: address and bytes of the block.
        base, base_size: address and bytes of the handles that contain the block.
        handles: number of these handles.
        place: place of the block.
    """

    __slots__ = ("facade", "struct", "ptr", "size", "base", "base_size", "handles", "place")

    def __init__(self, facade: "Facade", struct: _abi.Registration) -> None:
        self.facade = facade
        self.struct = struct
        self.ptr: int = struct.ptr or 0
        self.size: int = struct.size
        self.base: int = struct.base or 0
        self.base_size: int = struct.base_size
        self.handles: int = struct.handles
        self.place = Place.of_code(struct.place)

    def unregister(self) -> None:
        """Ends the registration. The block may already be freed."""
        check(library().strata_unregister(self.facade.handle, ctypes.byref(self.struct)))

    def __enter__(self) -> "Registration":
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()


class Sharing(_handle.Handle):
    """The functions of a facade for other GPUs and other processes."""

    def enable_peer(self, device: SupportsIndex, peer: SupportsIndex) -> None:
        """Lets the GPU `peer` use memory of the GPU `device`."""
        numbers = _arguments.integer(device, "device", 32), _arguments.integer(peer, "peer", 32)
        check(library().strata_enable_peer(self.handle, *numbers))

    def import_shared(self, shared: Shared, place: PlaceLike = gpu(0)) -> Imported:
        """Maps a block of another process in a gpu place."""
        if not isinstance(shared, Shared):
            raise TypeError(f"shared must be a Shared, not {shared!r} ({type(shared).__name__})")
        imported = _abi.Imported()
        check(getattr(library(), "strata_import")(self.handle, Place.of(place).code, ctypes.byref(shared.struct), ctypes.byref(imported)))
        return Imported(self, imported)  # type: ignore[arg-type]
