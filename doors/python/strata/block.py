"""Blocks of a facade, and the blocks that were still live when it was closed."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _abi, _handle
from ._library import library
from .errors import check
from .places import Place
from .sharing import Registration, Shared
from .stream import stream_handle

if TYPE_CHECKING:
    from .facade import Facade


class Leak(NamedTuple):
    """A block that was live when its facade was closed."""

    place: Place
    stream: int
    address: int
    size: int
    requested: int
    tag: str
    operator: str
    step: int
    pool: str


def leak_of(leak: _abi.Leak) -> Leak:
    texts = [(text or b"").decode("utf-8", "replace") for text in (leak.tag, leak.operator_name, leak.pool)]
    place = Place.of_code(leak.place)
    block = leak.block
    return Leak(place, leak.stream or 0, block.ptr or 0, block.size, leak.requested, texts[0], texts[1], leak.step, texts[2])


class Neighbours(NamedTuple):
    """The free bytes directly before and after a block, and the free run that would result if the block were freed."""

    free_before: int
    free_after: int
    run: int


class Block(_handle.ProcessObject):
    """A served request. It must be freed once: by free(), by free_on() or at the end of a `with` statement.

    Collecting the object frees nothing, because the device may still use the memory and only the program can rule that out.

    Attributes:
        ptr: the address; 0 for a request of 0 bytes.
        size: bytes granted, at least the number requested.
        ref: the ref of the block in the library.
    """

    __slots__ = ("facade", "ptr", "size", "ref")

    def __init__(self, facade: "Facade", block: _abi.Block) -> None:
        self.facade = facade
        self.ptr: int = block.ptr or 0
        self.size: int = block.size
        self.ref: int = block.ref

    def free(self) -> None:
        """Frees the block. The memory is reused only after the work of its owner and of every borrower. Raises StaleError if the
        block was already freed."""
        check(library().strata_free(self.facade.handle, self.ref))

    def free_on(self, stream: Any) -> None:
        """Frees the block like free(), with `stream` as the stream of the last use."""
        check(library().strata_free_on(self.facade.handle, self.ref, stream_handle(stream)))

    def retain(self) -> None:
        """Adds an owner, which must also free the block once."""
        check(library().strata_retain(self.facade.handle, self.ref))

    def record_stream(self, stream: Any) -> None:
        """Records that `stream`, which is not the owner, uses the block. The memory is reused only after all work that was
        submitted to `stream` before the free."""
        check(library().strata_record_stream(self.facade.handle, self.ref, stream_handle(stream)))

    borrow = record_stream

    def erase_stream(self, stream: Any) -> None:
        """Ends a borrow. The work on `stream` must be complete, or ordered before the owner's next work."""
        check(library().strata_erase_stream(self.facade.handle, self.ref, stream_handle(stream)))

    def route(self) -> str:
        """Returns the layers that served the block, as "retry > stream_safe > auto_growth | system"."""
        text = ctypes.create_string_buffer(1024)
        check(library().strata_allocation_route(self.facade.handle, self.ref, text, len(text)))
        return text.value.decode()

    def place(self) -> Place:
        """Returns the place of the block."""
        code = ctypes.c_uint32()
        check(library().strata_place_of(self.facade.handle, self.ref, ctypes.byref(code)))
        return Place.of_code(code.value)

    def stream(self) -> int:
        """Returns the handle of the owner stream. Raises StrataError (E_UNSUPPORTED) if no handle of it is valid in this thread."""
        handle = ctypes.c_void_p()
        check(library().strata_stream_of(self.facade.handle, self.ref, ctypes.byref(handle)))
        return handle.value or 0

    def pool(self) -> int:
        """Returns the number of the block's pool, or POOL_ORDINARY if it is in none."""
        number = ctypes.c_uint64()
        check(library().strata_pool_of(self.facade.handle, self.ref, ctypes.byref(number)))
        return number.value

    def base(self) -> "tuple[int, int]":
        """Returns the address and the bytes of the device memory that contains the block, or (0, 0) for a block of 0 bytes."""
        address, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(library().strata_base_of(self.facade.handle, self.ref, ctypes.byref(address), ctypes.byref(size)))
        return address.value or 0, size.value

    def neighbours(self) -> Neighbours:
        """Returns the free memory on both sides of the block in its chunk."""
        return _neighbours(self.facade, self.ref)[0]

    def export(self) -> Shared:
        """Returns a value that another process can import. Raises StrataError (E_UNSUPPORTED) unless the layer `vmm` served the
        memory."""
        shared = Shared()
        check(library().strata_export(self.facade.handle, self.ref, ctypes.byref(shared.struct)))
        return shared

    def register(self) -> Registration:
        """Keeps the memory of the block in place for NCCL, RDMA and the like, until Registration.unregister()."""
        struct = _abi.Registration()
        check(library().strata_register(self.facade.handle, self.ref, ctypes.byref(struct)))
        return Registration(self.facade, struct)

    def __enter__(self) -> "Block":
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def __repr__(self) -> str:
        return f"<strata.Block 0x{self.ptr:x} {self.size} bytes>"


def _neighbours(facade: "Facade", ref: int) -> "tuple[Neighbours, Block]":
    told = _abi.Neighbours(ctypes.sizeof(_abi.Neighbours))
    check(library().strata_neighbours(facade.handle, ref, ctypes.byref(told)))
    return Neighbours(told.free_before, told.free_after, told.run), Block(facade, told.block)


def block_of_ref(facade: "Facade", ref: int) -> Block:
    """Returns the live block with a ref of the library."""
    return _neighbours(facade, ref)[1]
