"""A facade belongs to its process: collecting it closes it, and it cannot be pickled or copied."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

import strata

MIB = 1 << 20
SOURCE = Path(os.environ["STRATA_SOURCE"])


def opened(strategy="strata"):
    return strata.open(strategy, devices="sim", ignore_environment=True)


def test_a_collected_facade_warns_and_is_closed():
    facade = opened()
    facade.allocate(MIB)
    name = repr(facade)
    handle = facade.handle
    with pytest.warns(ResourceWarning, match="unclosed facade <strata.Facade .* open>, with 1 live blocks") as warned:
        del facade
        gc.collect()
    assert len(warned) == 1 and name in str(warned[0].message)
    stale = strata.Facade(handle)
    with pytest.raises(strata.StaleError):
        stale.validate()
    with pytest.raises(strata.StaleError):
        stale.close()


def test_facades_that_nobody_closes_do_not_fill_the_process():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for _ in range(260):  # a process has 256
            facade = opened("system")
        del facade


def test_what_is_served_keeps_its_facade():
    kept = [opened().allocate(MIB), opened().stream(), opened().allocator()]
    gc.collect()
    for one in kept:
        one.facade.validate()
    kept[0].free()
    for one in kept:
        one.facade.close()


def test_a_closed_facade_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with opened() as facade:
            pass
        busy = opened()
        block = busy.allocate(MIB)
        with pytest.raises(strata.BusyError):
            busy.close("busy")
        block.free()
        busy.close()
        with pytest.raises(strata.StaleError):
            busy.close()
        del facade, busy, block
        gc.collect()


def test_a_facade_that_could_not_be_closed_is_still_open():
    facade = opened()
    facade.allocate(MIB)
    with pytest.raises(strata.BusyError):
        facade.close()
    with pytest.warns(ResourceWarning, match="with 1 live blocks"):
        del facade
        gc.collect()


def test_a_facade_in_a_cycle_is_closed():
    facade = opened()
    facade.on_out_of_memory(lambda *_: facade)
    handle = facade.handle
    with pytest.warns(ResourceWarning):
        del facade
        gc.collect()
    with pytest.raises(strata.StaleError):
        strata.Facade(handle).close()


def test_a_facade_collected_within_a_callback_is_closed_later():
    """No facade can be closed within a log message. The next open() closes it."""
    handles = []

    def log(level, text):
        if not handles:
            left = lost.pop()
            handles.append(left.handle)

    lost = [opened("system")]
    strata.set_log(log, "debug")
    try:
        with pytest.warns(ResourceWarning, match="cannot be closed yet"):
            with opened() as other:
                other.allocate(MIB).free()
    finally:
        strata.set_log(None)
    opened("system").close()
    with pytest.raises(strata.StaleError):
        strata.Facade(handles[0]).validate()


def test_nothing_of_a_facade_is_pickled_or_copied():
    with opened() as facade:
        stream = facade.stream()
        block = facade.allocate(MIB)
        with facade.begin_graph_pool(stream) as pool, facade.capture(stream) as graph:
            pass
        checkpoint = pool.checkpoint()
        objects = [facade, stream, block, pool, graph, checkpoint, facade.allocator(), block.export(), block.register()]
        for one in objects:
            for way in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(TypeError, match=f"a strata.{type(one).__name__} cannot be pickled or copied.*strata.open"):
                    way(one)
        objects[-1].unregister()
        checkpoint.drop()
        graph.destroy()
        pool.remove()
        block.free()
        del objects


def test_figures_and_places_are_pickled():
    with opened() as facade, facade.allocate(MIB) as block:
        values = [facade.statistics(), facade.snapshot(), facade.layer_figures(), facade.cache_below(), block.neighbours()]
        values += [block.place(), facade.allocator().describe(), strata.planning.make([(0, 1, 64)])]
        for value in values:
            assert pickle.loads(pickle.dumps(value)) == value and copy.deepcopy(value) == value


def python(program, *options):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE / "doors" / "python")}
    done = subprocess.run([sys.executable, *options, "-c", program], capture_output=True, text=True, timeout=60, env=environment)
    return done.returncode, done.stdout, done.stderr


HEAD = "import gc, os, strata, sys, threading\ns = strata.open('strata', devices='sim', ignore_environment=True)\n"


def test_the_end_of_the_interpreter_is_quiet():
    programs = {
        "with live blocks and work": "b = s.allocate(1 << 20); t = s.stream(); t.work(1e6, b); b.record_stream(t); x = b.export()",
        "in a cycle": "s.on_out_of_memory(lambda *_: s); s.me = s",
        "with a checkpoint": "t = s.stream()\nwith s.begin_graph_pool(t) as p: pass\nc = p.checkpoint()",
        "by an exception": "threading.Thread(target=lambda: s.allocate(1 << 20)).start(); raise SystemExit(0)",
    }
    for name, program in programs.items():
        assert python(HEAD + program, "-X", "dev") == (0, "", ""), name


def test_a_forked_child_leaves_the_facade_alone():
    program = HEAD + (
        "b = s.allocate(1 << 20)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    del s, b; gc.collect(); sys.exit(3)\n"
        "status = os.waitpid(pid, 0)[1]\n"
        "b.free(); s.validate(); s.close()\n"
        "print(os.WEXITSTATUS(status))\n"
    )
    assert python(program, "-X", "dev", "-W", "ignore::DeprecationWarning") == (0, "3\n", "")


def test_facades_are_collected_by_other_threads():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)

        def work():
            for _ in range(20):
                opened("system").allocate(4096)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
