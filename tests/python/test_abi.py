"""doors/python/strata/_abi.py says what the headers say: sizes, offsets, prototypes, numbers, names."""

import ctypes as c
import os
import re
import subprocess
from pathlib import Path

import pytest

from strata import _abi

HEADERS = Path(os.environ["STRATA_SOURCE"]) / "include" / "strata"

# What a type of the headers is for ctypes, its const left out.
TYPES = {
    "strata_status_t": c.c_int,
    "strata_cause_t": c.c_int,
    "strata_close_mode_t": c.c_int,
    "strata_log_level_t": c.c_int,
    "int": c.c_int,
    "strata_t": c.c_uint64,
    "strata_ref_t": c.c_uint64,
    "strata_place_t": c.c_uint32,
    "strata_stream_t": c.c_void_p,
    "strata_allocator_t": _abi.Allocator,
    "uint64_t": c.c_uint64,
    "uint32_t": c.c_uint32,
    "size_t": c.c_size_t,
    "char *": c.c_char_p,
    "void *": c.c_void_p,
    "void **": c.POINTER(c.c_void_p),
    "strata_stream_t *": c.POINTER(c.c_void_p),
    "strata_leak_fn": _abi.leak_fn,
    "strata_snapshot_fn": _abi.snapshot_fn,
    "strata_out_of_memory_fn": _abi.out_of_memory_fn,
    "strata_free_memory_fn": _abi.free_memory_fn,
    "strata_log_fn": _abi.log_fn,
    "strata_layer_figure_fn": _abi.layer_figure_fn,
    "strata_graph_filter_fn": _abi.graph_filter_fn,
    "strata_restored_fn": _abi.restored_fn,
    "strata_checkpoint_t": c.c_void_p,
    "strata_checkpoint_t *": c.POINTER(c.c_void_p),
    "strata_graph_t": c.c_void_p,
    "strata_graph_t *": c.POINTER(c.c_void_p),
    "bool *": c.POINTER(c.c_bool),
    "void": None,
}
#: The one function pointer that a parameter declares without a named type.
FOUND = r"void \(\*found\)\([^)]*\)"


def header_text() -> str:
    return "\n".join(path.read_text() for path in sorted(HEADERS.glob("*.h")))


def type_of(text: str) -> object:
    text = re.sub(r"\bconst\b", "", text)
    text = re.sub(r"\s+", " ", text.replace("*", " * ")).strip().replace("* *", "**")
    if text in TYPES:
        return TYPES[text]
    named = text[:-1].strip()
    assert text.endswith("*"), f"the test does not know the type {text!r}"
    return c.POINTER(_abi.STRUCTS[named] if named in _abi.STRUCTS else TYPES[named])


def declared(name: str):
    found = re.search(rf"STRATA_API ([^;(]*?)strata_{name}\(([^;]*)\);", header_text())
    assert found, f"no header declares strata_{name}"
    text = re.sub(FOUND, "FOUND", found[2])
    arguments = [] if text.strip() == "void" else text.split(",")
    types = [_abi.plan_found_fn if a.strip() == "FOUND" else type_of(re.sub(r"\w+\s*$", "", a)) for a in arguments]
    return type_of(found[1]), types


def functions_of_the_headers():
    """Every function that a header declares, but those of layer.h: layers are written in C."""
    text = "\n".join(path.read_text() for path in sorted(HEADERS.glob("*.h")) if path.name != "layer.h")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(re.findall(r"STRATA_API [^;(#]*?strata_(\w+)\(", text))


def test_every_function_is_bound_or_has_a_reason():
    declared_ones = functions_of_the_headers()
    assert len(declared_ones) > 100
    assert declared_ones - set(_abi.PROTOTYPES) == set(_abi.UNBOUND)
    assert set(_abi.PROTOTYPES) <= declared_ones
    assert len(_abi.UNBOUND) <= 8 and all(len(reason) > 10 for reason in _abi.UNBOUND.values())


@pytest.mark.parametrize("name", sorted(_abi.PROTOTYPES))
def test_a_prototype_is_the_header_s(name):
    assert (_abi.PROTOTYPES[name][0], _abi.PROTOTYPES[name][1]) == declared(name)


def test_structs_lie_as_in_c():
    told = subprocess.run([os.environ["STRATA_LAYOUT"]], stdout=subprocess.PIPE, text=True, check=True).stdout
    mine = []
    for name in dict.fromkeys(line.split()[0] for line in told.splitlines()):
        struct = _abi.STRUCTS[name]
        for field in struct._fields_:
            mine.append(f"{name} {field[0]} {getattr(struct, field[0]).offset} {getattr(struct, field[0]).size}")
        mine.append(f"{name} {c.sizeof(struct)}")
    assert mine == told.splitlines()
    assert {line.split()[0] for line in mine} == set(_abi.STRUCTS)


def rows_of(name: str):
    found = re.search(rf"#define {name}\(X\)(.*?[^\\])\n(?!\s*X\()", header_text(), re.S)
    assert found
    return re.findall(r"X\((\w+), ([^,]+),\s*([^,)]+)", found[1])


def test_statuses_are_the_header_s():
    assert {int(number): name for name, number, _ in rows_of("STRATA_STATUS_MAP")} == _abi.STATUSES


def test_statistics_are_the_header_s():
    rows = rows_of("STRATA_STATISTICS_MAP")
    assert tuple((name, unit.strip('" '), kind.strip() == "counter") for name, unit, kind in rows) == _abi.STATISTICS


def test_log_levels_are_the_header_s():
    rows = rows_of("STRATA_LOG_MAP")
    assert [(int(number), text.strip('" ')) for _, number, text in rows] == list(enumerate(_abi.LOG_LEVELS))


@pytest.mark.parametrize(
    "name",
    ["OPEN_IGNORE_ENVIRONMENT", "OPEN_CHECK_STREAM_IDS", "OPEN_ALLOW_CODE", "OPEN_CHECK_CAPTURES", "NO_RETRY", "NO_GROW", "ZERO"]
    + ["NO_REPORT", "CLOSE_BUSY", "CLOSE_WAIT", "CLOSE_FORCE", "POOL_ORDINARY", "POOL_EVERY", "UNLIMITED", "ABI_VERSION"]
    + ["SHARE_SEGMENTS", "PLAN_FIXED", "PLAN_OUTPUT", "PLAN_REMOVED", "PLAN_HELD", "PLAN_BUFFERS"],
)
def test_a_number_is_the_header_s(name):
    found = re.search(rf"(?m)^(?:#define|enum {{)? +STRATA_{name}(?: =)? +([^,\n/}}]+)", header_text())
    assert found
    text = found[1].strip().replace("UINT64_MAX", str(2**64 - 1))
    assert eval(re.sub(r"(?<=\d)(?:ull|u)\b", "", text)) == getattr(_abi, name)


def test_place_kinds_are_the_header_s():
    kinds = re.findall(r"STRATA_PLACE_(\w+) = (\d),", header_text())
    assert [(name.lower(), int(number)) for name, number in kinds] == [(n, i) for i, n in enumerate(_abi.PLACE_KINDS)]


@pytest.mark.parametrize(
    "enum, names",
    [("strata_pause_contents", _abi.PAUSE_CONTENTS), ("strata_plan_pools", _abi.PLAN_POOLS)],
)
def test_an_enum_is_the_header_s(enum, names):
    found = re.search(rf"enum {enum} {{(.*?)}}", re.sub(r"/\*.*?\*/", "", header_text(), flags=re.S), re.S)
    words = [word.split("=")[0].strip().lower() for word in found[1].split(",")]
    assert [word.rpartition("_")[2] for word in words] == list(names)


def test_the_lines_of_a_plan_are_the_header_s():
    found = re.search(r"#define STRATA_PLAN_LINE_MAP\(X\)(.*?[^\\])\n(?!\s*X\()", header_text(), re.S)
    assert tuple(re.findall(r"X\((\w+),", found[1])) == _abi.PLAN_EFFECTS


def test_a_wrong_prototype_would_be_seen():
    assert declared("free") != (c.c_int, [c.c_uint64])
    assert declared("release")[1][2] == c.POINTER(c.c_uint64)
