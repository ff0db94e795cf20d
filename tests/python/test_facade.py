"""The package over the library, on a simulated device."""

import gc
import threading
from pathlib import Path

import pytest

import strata
from strata.facade import stream_handle

MIB = 1 << 20
SMALL = """
version: 1
strategy: small
devices: sim
stack: [retry, stream_safe, {auto_growth: {chunk_size: 2MiB}}, {limit: {bytes: 64MiB}}, system]
pools: {weights: {stack: [stream_safe, {auto_growth: {chunk_size: 2MiB}}, system]}}
"""


def test_a_block_is_served_and_freed(s):
    block = s.allocate(3 * MIB)
    assert block.ptr and block.size >= 3 * MIB
    assert s.statistics().live_allocations == 1
    assert s.statistics()["requested_bytes"] == 3 * MIB
    assert block.route().startswith("retry > stream_safe > auto_growth_vmm")
    assert s.block_of(block.ptr).ref == block.ref
    assert s.block_around(block.ptr + 77).ref == block.ref
    block.free()
    assert s.statistics().live_allocations == 0
    with pytest.raises(strata.StaleError):
        block.free()


def test_a_block_of_nothing_has_no_address(s):
    with s.allocate(0) as block:
        assert (block.ptr, block.size) == (0, 0)


def test_collecting_a_block_frees_nothing(s):
    block = s.allocate(MIB)
    address = block.ptr
    del block
    gc.collect()
    assert s.statistics().live_allocations == 1
    s.free(address)


def test_a_borrowed_block_waits(s):
    copy = s.stream(name="copy")
    with s.allocate(MIB, stream=copy) as block:
        copy.work(500, block)
        block.record_stream(None)
        assert s.statistics(stream=copy).live_allocations == 1
    assert s.statistics().deferred_bytes == block.size
    copy.synchronize()
    copy.destroy()


def test_a_borrow_is_taken_back(s):
    other = s.stream()
    block = s.allocate(MIB)
    block.borrow(other)
    block.erase_stream(other)
    block.free()
    assert s.statistics().deferred_bytes == 0
    other.destroy()


def test_every_owner_frees_once(s):
    block = s.allocate(MIB)
    block.retain()
    block.free()
    assert s.statistics().live_allocations == 1
    block.free_on(None)
    with pytest.raises(strata.StaleError):
        block.retain()


def test_places_have_names(s):
    for place in (strata.gpu(0), strata.managed(0), strata.pinned(), strata.host(), "gpu:0", "pinned"):
        with s.allocate(4096, place=place):
            assert s.statistics(place).live_allocations == 1
    assert str(strata.Place.of("managed")) == "managed:0"
    assert [strata.Place.of_code(strata.Place.of(p).code) for p in ("gpu:3", "host")] == [("gpu", 3), ("host", 0)]
    for wrong in ("gpu:x", "disk", "gpu:-1", ""):
        with pytest.raises(ValueError):
            strata.Place.of(wrong)
    with pytest.raises(ValueError):
        strata.Place("gpu", 1 << 16).code


def test_memory_runs_out_with_the_report():
    with strata.open(text=SMALL) as s:
        seen = []
        number = s.on_out_of_memory(lambda place, size, cause, report: seen.append((str(place), size, cause, report)))
        with pytest.raises(strata.OutOfMemoryError) as raised:
            s.allocate(65 * MIB)
        assert isinstance(raised.value, MemoryError)
        assert raised.value.status == "E_NO_MEMORY"
        assert "try:" in str(raised.value)
        assert [row[:3] for row in seen] == [("gpu:0", 65 * MIB, "bound")]
        assert "try:" in seen[0][3]
        s.remove_callback(number)
        with pytest.raises(strata.OutOfMemoryError) as short:
            s.allocate(65 * MIB, report=False)
        assert "try:" not in str(short.value)
        assert len(seen) == 1


def test_the_program_is_asked_for_memory():
    with strata.open(text=SMALL) as s:
        kept = [s.allocate(60 * MIB)]
        asked = []

        def give(place, size):
            asked.append((str(place), size))
            block = kept.pop()
            block.free()
            return block.size

        s.on_free_memory(give)
        s.allocate(40 * MIB).free()
        assert asked == [("gpu:0", 40 * MIB)]


def test_a_wrong_strategy_is_placed(tmp_path: Path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("version: 1\nstrategy: w\nstack: [auto_grwth, system]\n")
    with pytest.raises(strata.StrategyError) as raised:
        strata.open(wrong, devices="sim")
    assert (raised.value.line, raised.value.column) == (3, 9)
    assert f"{wrong}:3:9" in str(raised.value) and "auto_growth" in str(raised.value)
    with pytest.raises(strata.StrategyError):
        strata.open("no-such-preset", devices="sim")
    with pytest.raises(TypeError):
        strata.open("strata", text=SMALL)
    with pytest.raises(TypeError):
        strata.open(text=SMALL, unknown=True)


def test_a_file_is_known_by_its_name(tmp_path: Path):
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL)
    for named in (str(path), path):
        with strata.open(named) as s:
            assert "strategy small" in s.explain()


def test_settings_override():
    with strata.open(text=SMALL, set=["limit.bytes=8MiB"]) as s:
        with pytest.raises(strata.OutOfMemoryError):
            s.allocate(9 * MIB)
        s.change_strategy(text=SMALL)
        s.allocate(9 * MIB).free()


def test_what_is_live_at_the_close_is_told():
    s = strata.open("strata", devices="sim", ignore_environment=True)
    s.step()
    s.annotate("attention")
    block = s.allocate(MIB, tag="kv")
    s.annotate(None)
    with pytest.raises(strata.BusyError) as raised:
        s.close()
    (leak,) = raised.value.leaks
    assert (leak.place, leak.address, leak.requested) == (strata.gpu(0), block.ptr, MIB)
    assert (leak.tag, leak.operator, leak.step) == ("kv", "attention", 1)
    assert [one.address for one in s.close("force")] == [block.ptr]
    with pytest.raises(strata.StaleError):
        s.statistics()


def test_a_failed_with_closes_and_keeps_its_own_error():
    with pytest.raises(KeyError):
        with strata.open("strata", devices="sim") as s:
            s.allocate(MIB)
            raise KeyError("mine")
    with pytest.raises(strata.StaleError):
        s.validate()


def test_caches_go_back(s):
    s.allocate(30 * MIB).free()
    assert s.mem_info()["cached"] >= 30 * MIB
    assert s.trim(0) >= 30 * MIB
    assert s.statistics().reserved_bytes == 0
    s.set_limit(MIB)
    assert s.mem_info()["limit"] == MIB
    with pytest.raises(strata.OutOfMemoryError):
        s.allocate(4 * MIB)
    s.set_limit(None)
    s.allocate(4 * MIB).free()
    assert s.release() >= 4 * MIB
    s.reset_peaks()
    assert s.statistics().peak_reserved_bytes == 0


def test_a_snapshot_has_every_block(s):
    blocks = [s.allocate(MIB), s.allocate(2 * MIB)]
    rows = s.snapshot()
    assert {(row.address, row.requested) for row in rows if row.state == "live"} == {(b.ptr, n * MIB) for n, b in enumerate(blocks, 1)}
    assert sum(row.size for row in rows) == s.statistics().reserved_bytes
    report = s.report()
    assert report.startswith("gpu:0\n") and "2 MiB live" not in report and "2MiB live" in report
    for block in blocks:
        block.free()
    assert s.report("host") == "host"


def test_texts_longer_than_the_first_guess_are_whole(s):
    blocks = [s.allocate(4096 + 256 * i) for i in range(200)]
    assert s.chunks().count(" live") == 200
    for block in blocks:
        block.free()


def test_pools_keep_apart():
    with strata.open(text=SMALL) as s:
        weights = s.pool("weights")
        with s.in_pool(weights):
            inside = s.allocate(MIB)
        outside = s.allocate(MIB)
        named = s.allocate(MIB, pool=weights)
        assert s.statistics(pool=weights).live_allocations == 2
        for block in (inside, outside, named):
            block.free()
        with pytest.raises(strata.InvalidError):
            s.pool("weihgts")


def test_figures_for_machines(s):
    with s.allocate(MIB):
        (place,) = [one for one in s.all_statistics()["places"] if one["place"] == "gpu:0"]
        assert place["total"]["live_allocations"] == 1
        assert 'strata_live_allocations{place="gpu:0"} 1' in s.prometheus()
    s.validate()
    with pytest.raises(AttributeError):
        s.statistics().no_such_figure


def test_the_log_is_a_function():
    said = []
    strata.set_log(lambda level, text: said.append((level, text)), "info")
    try:
        with strata.open("strata", devices="sim", ignore_environment=True) as s:
            s.allocate(MIB).free()
    finally:
        strata.set_log(None)
    assert said and all(level == "info" for level, _ in said)


def test_a_thread_s_error_is_its_own(s):
    """Two threads fail at once, each in its own way, and each reads its own reason."""
    wrong = []

    def fail(call, expected):
        for _ in range(300):
            try:
                call()
            except strata.StrataError as error:
                if error.status != expected:
                    wrong.append(error)

    threads = [
        threading.Thread(target=fail, args=(lambda: s.free(12345), "E_UNKNOWN_POINTER")),
        threading.Thread(target=fail, args=(lambda: s.allocate(1 << 49), "E_INVALID")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_streams_of_others_are_understood():
    class Torch:
        cuda_stream = 7

    class Cupy:
        ptr = 8

    class Number:
        value = 9

    class Numba:
        handle = Number()

    class Protocol:
        def __cuda_stream__(self):
            return (0, 10)

    assert [stream_handle(stream) for stream in (None, 3, Torch(), Cupy(), Numba(), Protocol())] == [0, 3, 7, 8, 9, 10]
    Number.value = None
    assert stream_handle(Numba()) == 0
    with pytest.raises(TypeError):
        stream_handle("0x7")


def test_what_others_launch_is_recorded(tmp_path: Path):
    path = tmp_path / "run.csv"
    strategy = tmp_path / "recorded.yaml"
    strategy.write_text(f"strategy: recorded\nstack: [trace: {{path: {path}}}, stream_safe, auto_growth, system]\n")
    with strata.open(strategy, devices="sim:h100", ignore_environment=True) as s:
        one, two = s.stream(), s.stream()
        block = s.allocate(MIB, stream=one)
        s.note_work(one, 120, block)
        s.note_wait(two, one)
        s.note_sync(two)
        s.note_sync()
        block.free()
        assert s.statistics().deferred_bytes == 0
        with pytest.raises(strata.StaleError):
            s.note_work(one, 120, block)
        one.destroy()
        two.destroy()
    rows = [line.split(",") for line in path.read_text().splitlines() if not line.startswith("#")]
    told = [dict(zip(rows[0], row)) for row in rows[1:]]
    assert [row["op"] for row in told] == ["alloc", "work", "wait", "sync", "sync", "free"]
    assert told[1]["dur_us"] == "120" and told[4]["stream"] == "all"
