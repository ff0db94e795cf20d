"""scripts/bench-peers: the workloads through Strata alone, and the page that is made of figures."""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(os.environ["STRATA_SOURCE"])
sys.path.insert(0, str(SOURCE / "scripts" / "bench_peers"))

import page  # noqa: E402


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The figures of a small run, and its page."""
    if not shutil.which(os.environ.get("CC", "cc")):
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("bench")
    words = [sys.executable, str(SOURCE / "scripts" / "bench-peers"), "--quick", "--only", "strata", "--library", os.environ["STRATA_LIBRARY"]]
    done = subprocess.run(
        [*words, "--folder", str(folder), "--out", str(folder / "page.md")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400
    )
    assert done.returncode == 0, done.stdout
    return json.loads((folder / "results.json").read_text()), (folder / "page.md").read_text()


def test_strata_does_every_workload(told):
    figures, _ = told
    assert len(figures["workloads"]) > 3
    for label in figures["labels"]:
        for key in figures["workloads"]:
            cell = figures["cells"][f"{label}/{key}"]
            assert cell.get("ns", 0) > 0, (label, key, cell)


def test_the_device_gave_what_was_live(told):
    figures, _ = told
    for name, cell in figures["cells"].items():
        if cell["requested"]:
            assert cell["reserved"] >= cell["requested"], name


def test_a_hit_asks_the_device_for_nothing(told):
    figures, _ = told
    assert all(figures["cells"][f"{label}/hot"]["calls"] == 0 for label in figures["labels"])


def test_every_peer_has_a_row(told):
    figures, text = told
    for label in figures["labels"]:
        assert len(re.findall(rf"^\| {re.escape(label)} \|", text, re.MULTILINE)) > len(figures["labels"]) // 2


def with_peer(figures, label, faster):
    """The figures, and a peer that takes `faster` times less than Strata's default."""
    figures = copy.deepcopy(figures)
    figures["labels"].append(label)
    figures["programs"][label] = "other"
    figures["from"]["other"] = "somewhere"
    for key in figures["workloads"]:
        cell = dict(figures["cells"][f"strata/{key}"])
        figures["cells"][f"{label}/{key}"] = dict(cell, ns=cell["ns"] / faster)
    return figures


def test_a_peer_that_is_ahead_is_told_with_the_reason(told):
    text, unexplained = page.page(with_peer(told[0], "mimalloc", 2))
    assert not unexplained
    assert "**mimalloc**" in text


def test_a_lead_without_a_reason_is_no_page(told):
    _, unexplained = page.page(with_peer(told[0], "nobody knows", 2))
    assert len(unexplained) == len(told[0]["workloads"])


def test_a_peer_that_is_behind_is_not_told_as_ahead(told):
    text, unexplained = page.page(with_peer(told[0], "mimalloc", 0.5))
    assert not unexplained
    assert "**mimalloc**" not in text


def test_what_cannot_be_had_is_a_row(told):
    figures = copy.deepcopy(told[0])
    figures["absent"].append(["RMM pool", "pip reached nobody"])
    figures["cells"]["strata/hot"] = {"none": "it failed"}
    text, _ = page.page(figures)
    assert re.search(r"^\| RMM pool \|.*pip reached nobody", text, re.MULTILINE)
    assert "It failed: strata, 64 KiB." in text
