"""Exceptions can be pickled and copied with all attributes, and a missing file is also a FileNotFoundError."""

import concurrent.futures
import copy
import errno
import multiprocessing
import os
import pickle
import sys
from pathlib import Path

import pytest

import strata
import strata.cupy
from strata import _abi, _library, errors

MIB = 1 << 20
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, strata.StrataError)]


class Outside(strata.StrataError):
    """A program's own subclass with different arguments."""

    def __init__(self, reason):
        super().__init__("E_IO", f"outside: {reason}", 7)
        self.reason = reason


def made():
    """One of each class, with every attribute set."""
    reason = FileNotFoundError(errno.ENOENT, "No such file or directory", "nowhere.csv")
    for kind in KINDS:
        if issubclass(kind, strata.FileError):
            yield kind("E_IO", f"{kind.__name__}: text", reason)
        else:
            yield kind("E_BUSY", f"{kind.__name__}: text", -(2**40), 3, 9)
    busy = strata.BusyError("E_BUSY", "one is live")
    busy.leaks = [strata.Leak(strata.gpu(1), 7, 4096, 512, 500, "kv", "attention", 2, "weights")]
    busy.noted = "by the program"
    yield busy
    yield Outside(5)
    with strata.open("strata", devices="sim:h100", ignore_environment=True) as s, pytest.raises(strata.OutOfMemoryError) as report:
        s.allocate(1 << 40)
    yield report.value


FIELDS = ("status", "device_code", "line", "column", "errno", "filename", "strerror", "leaks", "noted", "reason", "summary")


def fields(error):
    return type(error), str(error), error.args, {name: getattr(error, name) for name in FIELDS if hasattr(error, name)}


WAYS = [copy.copy, copy.deepcopy] + [
    lambda error, protocol=protocol: pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
]


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_an_exception_is_the_same_after_a_copy(way):
    for error in made():
        again = WAYS[way](error)
        assert again is not error and fields(again) == fields(error)
        with pytest.raises(type(error)):
            raise again


def test_an_exception_of_a_class_that_nobody_can_import_has_its_base(s):
    """CuPy's exception is a class that the door makes."""
    import types

    out = type("OutOfMemoryError", (MemoryError,), {})
    runtime = type("CUDARuntimeError", (RuntimeError,), {"status": None})
    cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(memory=types.SimpleNamespace(OutOfMemoryError=out)))
    cupy.cuda.runtime = types.SimpleNamespace(CUDARuntimeError=runtime)
    error = strata.cupy._error_of(cupy)(strata.OutOfMemoryError("E_NO_MEMORY", "the report"))
    assert type(copy.copy(error)) is type(error)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is strata.OutOfMemoryError and str(again) == "the report" and again.status == error.status


JOBS = {
    "missing trace": (strata.MissingFileError, lambda: strata.compare(["strata"], ["nope.csv"], device="sim:h100")),
    "preset": (strata.StrategyError, lambda: strata.open("stratta", devices="sim")),
    "out of memory": (strata.OutOfMemoryError, lambda: strata.open("strata", devices="sim:h100").allocate(1 << 40)),
    "busy": (strata.BusyError, lambda: _leave_one_live()),
}


def _leave_one_live():
    facade = strata.open("strata", devices="sim")
    facade.allocate(MIB, tag="kv")
    facade.close()


def job(name):
    sys.path.insert(0, str(Path(os.environ["STRATA_SOURCE"]) / "doors" / "python"))
    return JOBS[name][1]()


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_the_reason_leaves_a_pool_of_processes(start):
    context = multiprocessing.get_context(start)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
        for name, (kind, _) in JOBS.items():
            error = executor.submit(job, name).exception(timeout=60)
            if getattr(error, "status", "") == "E_FORKED":
                assert start == "fork"  # this process has opened facades before
                continue
            assert type(error) is kind, error
            if name == "busy":
                assert [leak.tag for leak in error.leaks] == ["kv"]
    with context.Pool(1) as pool:
        with pytest.raises(strata.MissingFileError):
            pool.apply_async(job, ["missing trace"]).get(timeout=60)


CLASSES = {
    "E_INVALID": strata.InvalidError,
    "E_NO_MEMORY": strata.OutOfMemoryError,
    "E_STALE": strata.StaleError,
    "E_NO_DEVICE": strata.DeviceError,
    "E_DEVICE": strata.DeviceError,
    "E_DEVICE_LOST": strata.DeviceError,
    "E_SHUTDOWN": strata.DeviceError,
    "E_STRATEGY": strata.StrategyError,
    "E_FORMAT": strata.StrategyError,
    "E_BUSY": strata.BusyError,
    "E_NOT_READY": strata.BusyError,
}


def test_each_status_has_its_exception():
    for number, name in _abi.STATUSES.items():
        if name == "OK":
            errors.check(number)
            continue
        with pytest.raises(strata.StrataError) as raised:
            errors.check(number)
        assert (type(raised.value), raised.value.status) == (CLASSES.get(name, strata.StrataError), name)
        assert raised.value.summary == _library.library().strata_status_text(number).decode()
    builtin = {strata.OutOfMemoryError: MemoryError, strata.StrategyError: ValueError, strata.InvalidError: ValueError}
    builtin.update({strata.FileError: OSError, strata.MissingFileError: FileNotFoundError})
    assert all(issubclass(kind, base) for kind, base in builtin.items())


# ---- files


def missing_files(s, folder):
    nowhere = folder / "nowhere.yaml"
    trace = folder / "run.csv"
    trace.write_text("op,id,size,stream,time_us\nalloc,1,64,0,0\n")
    yield nowhere, lambda: strata.open(nowhere, devices="sim")
    yield nowhere, lambda: strata.open(str(nowhere), devices="sim")
    yield nowhere, lambda: strata.open("strata", devices=f"sim:{nowhere}")
    yield nowhere, lambda: s.change_strategy(nowhere)
    yield nowhere, lambda: s.pause(pool=strata.POOL_EVERY, contents="file", directory=nowhere)
    yield nowhere, lambda: strata.explain(nowhere)
    yield nowhere, lambda: strata.compare([nowhere], [trace], device="sim:h100")
    yield folder / "nope.csv", lambda: strata.compare(["strata"], [trace, folder / "nope.csv"], device="sim:h100")


def test_a_missing_file_is_file_not_found(s, tmp_path):
    block = s.allocate(MIB)
    count = 0
    for path, call in missing_files(s, tmp_path):
        if count == 3:
            block.free()  # a strategy is changed while nothing is live
        if count == 4:
            block = s.allocate(MIB)
        with pytest.raises(FileNotFoundError) as raised:
            call()
        error = raised.value
        assert isinstance(error, strata.MissingFileError) and isinstance(error, strata.StrategyError)
        assert (error.errno, error.filename) == (errno.ENOENT, str(path)) and str(path) in str(error)
        count += 1
    block.free()
    assert count == 8


def test_a_file_that_cannot_be_opened_is_an_os_error(s, tmp_path):
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    with pytest.raises(OSError) as raised:
        strata.open(loop, devices="sim")
    assert isinstance(raised.value, strata.FileError) and not isinstance(raised.value, FileNotFoundError)
    assert (raised.value.errno, raised.value.filename) == (errno.ELOOP, str(loop))


def test_another_error_is_no_file_error(s, tmp_path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("strategy: w\nstack: [no_such_layer]\n")
    for call in (lambda: strata.open(wrong, devices="sim"), lambda: strata.explain(wrong), lambda: strata.open("no-such-preset", devices="sim")):
        with pytest.raises(strata.StrategyError) as raised:
            call()
        assert not isinstance(raised.value, OSError)
