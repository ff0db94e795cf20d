"""Every public function and method refuses wrong values for each of its parameters. The annotation selects the wrong values.

The functions are found by inspection, so new public functions are tested at once. A parameter with an unknown annotation fails.
"""

import inspect
import os
import socket
import sys
from pathlib import Path

import pytest

import strata
import strata.cupy
import strata.numba
import strata.onnxruntime
import strata.rmm
import strata.torch
from strata import _arguments

MIB = 1 << 20
NAMES = [(5, TypeError), (None, TypeError), (True, TypeError), (1.5, TypeError), ([], TypeError), ("a\0b", ValueError)]
INTEGERS = [(2**64, OverflowError), (2**70, OverflowError), (-1, ValueError), (-(2**64), ValueError), (True, TypeError), (False, TypeError)]
INTEGERS += [(1.0, TypeError), ("1", TypeError), (b"1", TypeError), ([], TypeError), (object(), TypeError)]
TEXTS = [*NAMES, (b"text", TypeError), (Path("text"), TypeError)]
PATHS = NAMES
FLAGS = [("no", TypeError), ("", TypeError), (None, TypeError), (1.0, TypeError), (2, TypeError), ([], TypeError)]
DURATIONS = [(-1, ValueError), (-0.5, ValueError), (float("nan"), ValueError), (float("inf"), OverflowError), (2**65, OverflowError)]
DURATIONS += [("1", TypeError), (True, TypeError), (None, TypeError), (1j, TypeError)]
LISTS = [("text", TypeError), (b"text", TypeError), (5, TypeError), (None, TypeError), (Path("text"), TypeError), ([5], TypeError), ({"a": "b"}, TypeError)]
OBJECTS = [(5, TypeError), (None, TypeError), ("text", TypeError), (0, TypeError)]
FUNCTIONS = [(5, TypeError), ("text", TypeError), ([], TypeError)]
PLACES = [(5, TypeError), (None, TypeError), ("disk", ValueError), ("gpu:-1", ValueError), ("", ValueError), ("gpu:1:2", ValueError)]
PLACES += [(strata.Place("gpu", -1), ValueError), (strata.Place("gpu", 2**64), OverflowError), (strata.Place("gpu", "0"), TypeError)]
STREAMS = [("0x7", TypeError), (1.5, TypeError), (True, TypeError), (2**64, OverflowError), (-1, ValueError), ([], TypeError)]
SOCKETS = [("0", TypeError), (None, TypeError), (2**64, OverflowError), (2**31, OverflowError), (-1, ValueError)]

KINDS = {
    "SupportsIndex": INTEGERS + [(None, TypeError)],
    "Optional[SupportsIndex]": INTEGERS,
    "Real": DURATIONS,
    "str": TEXTS,
    "Optional[str]": [row for row in TEXTS if row[0] is not None],
    "PathLike": PATHS,
    "Optional[PathLike]": [row for row in PATHS if row[0] is not None],
    "StrategyLike": [row for row in PATHS if row[0] is not None],
    "bool": FLAGS,
    "Sequence[str]": LISTS + [([None], TypeError), (["a\0b"], ValueError), ([["a"]], TypeError)],
    "Sequence[PathLike]": LISTS + [([None], TypeError), (["a\0b"], ValueError), ([], ValueError)],
    "Iterable[Sequence[Any]]": LISTS + [([(0, 1)], ValueError), ([(0, 1, -1)], ValueError), ([(0, 1, 2**64)], OverflowError), ([(0, 1, "4")], TypeError)],
    "Iterable[SupportsIndex]": [("text", TypeError), (5, TypeError), (None, TypeError)]
    + [([0, value], kind) for value, kind in INTEGERS]
    + [([0], ValueError)],
    "PlaceLike": PLACES,
    "Block": OBJECTS,
    "Shared": OBJECTS,
    "bytes": [("text", TypeError), (5, TypeError), (None, TypeError), (b"short", ValueError)],
    "socket": SOCKETS,
    "stream": STREAMS,
}
BUFFERS = [strata.planning.Buffer(0, 2, 4096), (1, 3, 4096)]
VALID = {"size": MIB, "address": 4096, "keep": 0, "limit": MIB, "number": 1, "name": "copy", "pool": 1, "path": "plan.json", "mode": "busy"}
VALID.update({"device": 0, "peer": 1, "count": 1, "microseconds": 1, "stream": None, "other": None, "a": None, "b": None, "place": "gpu:0"})
VALID.update({"strategy": "strata", "strategies": ["strata"], "traces": ["nowhere.csv"], "buffers": BUFFERS, "offsets": [0, 4096]})
VALID.update({"operator": "op", "message": b"", "process": 1, "socket": 0, "log": None, "level": "info"})
#: Parameters whose annotation is not specific enough.
BY_NAME = {"stream": "stream", "other": "stream", "a": "stream", "b": "stream", "socket": "socket"}
#: Negative numbers are allowed.
SIGNED = {("Facade.stream", "priority")}


def kind_of(where, parameter):
    if parameter.name in BY_NAME and parameter.annotation in ("Any", inspect.Parameter.empty):
        return BY_NAME[parameter.name]
    text = parameter.annotation.strip("\"'")
    return "function" if "Callable" in text else text


def public():
    """(name, function, class or None) of the whole public interface."""
    for name in strata.__all__:
        found = getattr(strata, name)
        if inspect.isfunction(found):
            yield name, found, None
        elif inspect.isclass(found) and not issubclass(found, BaseException):
            for method, function in inspect.getmembers(found):
                if inspect.isfunction(function) and function.__module__.startswith("strata") and not method.startswith("_"):
                    yield f"{name}.{method}", function, found
    for name in strata.planning.__all__:
        if inspect.isfunction(getattr(strata.planning, name)):
            yield f"planning.{name}", getattr(strata.planning, name), None


PUBLIC = list(public())


def parameters(function, owner):
    told = list(inspect.signature(function).parameters.values())
    static = owner is not None and isinstance(inspect.getattr_static(owner, function.__name__), staticmethod)
    return told if owner is None or static else told[1:]


@pytest.fixture(scope="module")
def objects():
    with strata.open("strata", devices="sim:h100", ignore_environment=True) as facade:
        stream = facade.stream()
        with facade.allocate(MIB) as block, facade.begin_graph_pool(stream) as pool, block.export() as shared:
            with facade.capture(stream) as graph:
                pass
            made = [facade, block, stream, pool, shared, graph, facade.allocator(), strata.gpu(0)]
            yield {type(one): one for one in made}
            graph.destroy()
        pool.remove()


def bad_values():
    for where, function, owner in PUBLIC:
        for parameter in parameters(function, owner):
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                yield where, function, owner, parameter, None, None
                continue
            for value, kind in FUNCTIONS if kind_of(where, parameter) == "function" else KINDS.get(kind_of(where, parameter), [(None, None)]):
                if (where, parameter.name) in SIGNED and isinstance(value, int) and value == -1:
                    continue
                if (where, parameter.name) in SIGNED and kind is ValueError:
                    kind = OverflowError
                yield where, function, owner, parameter, value, kind


def test_every_parameter_is_refused_what_is_wrong(objects):
    tried, wrong = 0, []
    for where, function, owner, parameter, value, expected in bad_values():
        if expected is None:
            wrong.append(f"{where}: the test knows no wrong values for {parameter}")
            continue
        call = function if owner is None or parameters(function, owner) == list(inspect.signature(function).parameters.values()) else None
        call = call or getattr(objects[owner], function.__name__)
        positional, named = [], {}
        for other in parameters(function, owner):
            if other.kind is inspect.Parameter.VAR_POSITIONAL:
                positional += [value] if other.name == parameter.name else []
            elif other.name == parameter.name:
                named[other.name] = value
            elif other.default is inspect.Parameter.empty:
                named[other.name] = objects[strata.Shared] if other.name == "shared" else VALID[other.name]
        if positional:
            positional = [*named.values(), *positional]
            named = {}
        tried += 1
        try:
            call(*positional, **named)
            wrong.append(f"{where}({parameter.name}={value!r}) is accepted")
        except Exception as error:
            if type(error) is not expected:
                wrong.append(f"{where}({parameter.name}={value!r}): {type(error).__name__}: {error}; {expected.__name__} is right")
    assert not wrong, "\n".join(wrong)
    assert tried > 800


DOORS = [strata.torch, strata.cupy, strata.rmm, strata.numba, strata.onnxruntime]


def test_every_public_function_is_annotated():
    doors = [(f"{door.__name__}.{name}", getattr(door, name), None) for door in DOORS for name in door.__all__]
    for where, function, owner in PUBLIC + doors:
        signature = inspect.signature(function)
        assert signature.return_annotation is not inspect.Signature.empty, where
        for parameter in parameters(function, owner):
            assert parameter.annotation is not inspect.Parameter.empty, f"{where}: {parameter.name}"
        assert inspect.getdoc(function), f"{where} has no documentation"
    assert (Path(strata.__file__).parent / "py.typed").exists()


class Index:
    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number


def test_whatever_has_an_index_is_an_integer(s):
    s.allocate(Index(MIB), alignment=Index(256), pool=Index(1)).free()
    s.set_limit(Index(2**64 - 1))
    numpy = pytest.importorskip("numpy")
    for kind in (numpy.int64, numpy.uint8, numpy.uint64, numpy.intp):
        s.allocate(kind(100), zero=numpy.bool_(True)).free()
    with pytest.raises(TypeError):
        s.allocate(numpy.float64(100))
    with pytest.raises(ValueError):
        s.allocate(numpy.int8(-1))
    side = s.stream()
    side.work(numpy.float32(1.5))
    s.allocate(1, stream=numpy.uint64(side.handle)).free()
    side.destroy()


def test_the_largest_values_reach_the_library(s):
    with pytest.raises(strata.InvalidError, match="a request of 18446744073709551615 bytes"):
        s.allocate(2**64 - 1)
    with pytest.raises(strata.StrataError):
        s.block_of(2**64 - 1)
    s.set_limit(2**64 - 1)
    s.trim(2**64 - 1)


def test_durations_end_where_their_field_ends():
    assert _arguments.nanoseconds(18446744073709551, "t") == 18446744073709551000
    assert _arguments.nanoseconds(18446744073, "t", "seconds") == 18446744073000000000
    for value, unit in ((18446744073709552, "microseconds"), (18446744074, "seconds"), (2**64 / 1000, "microseconds")):
        with pytest.raises(OverflowError):
            _arguments.nanoseconds(value, "t", unit)


def test_zero_and_nothing(s):
    """0, "" and empty lists are values, not missing arguments."""
    with s.allocate(0, tag="", pool=0, alignment=0, stream=0) as nothing:
        assert nothing.ptr == 0 and nothing.size == 0
    s.set_limit(0)
    assert s.mem_info()["limit"] == 0
    with pytest.raises(strata.OutOfMemoryError):
        s.allocate(1)
    s.set_limit(None)
    stream = s.stream(priority=0)
    stream.work(0)
    s.note_work(None, 0)
    stream.destroy()
    with pytest.raises(strata.InvalidError, match="empty"):
        s.stream(name="")
    assert s.graph_pools() == []
    with strata.open("strata", devices="sim", set=[]) as other:
        other.change_strategy(set=())
    for empty in ({"strategy": ""}, {"text": ""}, {"devices": ""}, {"set": [""]}):
        with pytest.raises(strata.StrategyError):
            strata.open(**{"strategy": None if "text" in empty else "strata", "devices": "sim", **empty})
    for arguments in ({"device": ""}, {"capacity": ""}, {"repeat": 0}, {"set": [""]}):
        with pytest.raises(strata.StrategyError):
            strata.compare(["strata"], [Path(os.environ["STRATA_SOURCE"]) / "traces" / "tinytorch-mnist.csv"], **arguments)


def test_the_right_form_is_in_the_message(s):
    with pytest.raises(TypeError, match=r"write set=\['limit.bytes=1MiB'\]"):
        strata.open("strata", devices="sim", set="limit.bytes=1MiB")
    with pytest.raises(TypeError, match=r"write traces=\['run.csv'\]"):
        strata.compare(["strata"], "run.csv")
    with pytest.raises(TypeError, match=r"write strategies=\[PosixPath\('mine.yaml'\)\]"):
        strata.compare(Path("mine.yaml"), ["run.csv"])
    with pytest.raises(OverflowError, match=r"size is 18446744073709551616; it must be below 2\*\*64"):
        s.allocate(2**64)
    with pytest.raises(TypeError, match=r"size must be an integer, not 1.5 \(float\)"):
        s.allocate(1.5)


def test_a_socket_is_itself_or_its_number():
    one, other = socket.socketpair()
    with one, other:
        assert _arguments.descriptor(one, "socket") == _arguments.descriptor(one.fileno(), "socket") == one.fileno()


def test_a_callback_that_returns_no_number_frees_nothing(s, monkeypatch):
    printed = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: printed.append(type(told.exc_value)))
    total = s.mem_info()["total"]
    half = s.allocate(total // 2)
    for answer in (-1, "1", 2**64):
        number = s.on_free_memory(lambda place, size: answer)  # noqa: B023
        with pytest.raises(strata.OutOfMemoryError):
            s.allocate(total // 4 * 3, report=False)
        s.remove_callback(number)
    half.free()
    assert set(printed) == {ValueError, TypeError, OverflowError}
