"""Measures the lines that each test reaches. It runs every suite of the coverage build once, or each test of a slow suite, and
reads the lines from gcov."""
import concurrent.futures
import functools
import json
import os
import re
import shutil
import subprocess

import bounded

# Programs with tests that may kill a mutant.
PROGRAMS = ["platform", "sim", "trace", "cuda", "mechanism", "allocation", "async", "graphs", "strategy", "config", "outside", "decorators",
            "recorder", "records", "ranges", "planning", "replay", "facade", "chunked", "naive", "bfc", "caching", "checker", "peers", "torture", "mutated", "security",
            "fuzz", "tools", "conformance", "share", "pause", "doors", "failures"]
# Programs that are not used. The house rules, the installed package, the C++ headers and the real GPU reach no additional
# lines. Other tests load the modules.
LEFT_OUT = ["house", "install", "gpu", "cpp", "modules", "python"]
# Suites of these programs are never measured test by test, because each layer has a suite of many small tests.
BY_SUITE = {"conformance"}
# These programs run the command too.
BY_COMMAND = {"tools", "security"}
# The mutated folders: the library, and the replay, because every decision depends on its metrics. lab/conform/, programs/,
# lab/torture/ and lab/tools/ are left out. They are instruments and printing code. Instruments insert their own faults into the
# code that they measure (tests/mutated, tests/checker). The folder doors/preload/ is left out because it runs inside other
# programs.
WATCHED = ("platform/", "trace/", "allocation/", "planning/", "strategy/", "config/", "facade/", "lab/trace/", "lab/replay/",
           "doors/common/")
# Folders of the compiler's notes (.gcno) for them: the object folders, and sources that a test program compiles itself.
NOTES = re.compile(r"/(?:strata_(?:%s)\.dir|test_\w+\.dir/__)(?:/|$)" % "|".join(folder.strip("/").replace("/", "_") for folder in WATCHED))
LONGEST = 120
QUICK = 1.0  # max seconds of a suite that is measured as a whole
KEEP_EVERY = 50  # units


def unnamed_programs(root):
    """Returns the test programs that are in neither list."""
    folders = sorted(os.listdir(os.path.join(root, "tests")))
    return [name for name in folders if name not in PROGRAMS + LEFT_OUT
            and os.path.exists(os.path.join(root, "tests", name, "CMakeLists.txt"))]


@functools.lru_cache(None)
def name_in_tree(path, root):
    """Returns the file of the tree for a path from gcov. A compiler cache may have made the path relative to any folder."""
    parts = os.path.normpath(path).split("/")
    for at in range(len(parts)):
        name = "/".join(parts[at:])
        if parts[at] not in ("", "..") and os.path.isfile(os.path.join(root, name)):
            return name
    return ""


def suites_of(path):
    """Returns {filter of a suite: filters of its tests} of a program."""
    listed = subprocess.run([path, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    suite, suites = "", {}
    for line in listed.splitlines():
        if line[:1] not in (" ", "") and line.rstrip().endswith("."):
            suite = line.strip()
            suites[suite + "*"] = []
        elif line.startswith("  ") and suite:
            suites[suite + "*"].append(suite + line.split("#")[0].strip())
    return suites


class Worker:
    """A folder for the counts of one run at a time. gcov needs the notes (.gcno) in the same folder."""

    def __init__(self, build, folder):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        for top, _, names in os.walk(build):
            for name in names:
                if name.endswith(".gcno") and NOTES.search(top):
                    os.makedirs(folder + top, exist_ok=True)
                    os.symlink(os.path.join(top, name), os.path.join(folder + top, name))

    def counts(self):
        return [os.path.join(top, name) for top, _, names in os.walk(self.folder) for name in names if name.endswith(".gcda")]

    def run(self, path, chosen, root):
        for file in self.counts():
            os.unlink(file)
        environment = dict(os.environ, GCOV_PREFIX=self.folder, GTEST_BRIEF="1")
        ended = bounded.run([path, "--gtest_filter=" + chosen], self.folder, LONGEST, environment)
        # The time of GoogleTest excludes the start and the writing of the counts. The processor time bounds it on a busy machine.
        own = re.search(r"ran\. \((\d+) ms total\)", ended.text)
        seconds = min(int(own.group(1)) / 1000, ended.seconds) if own else ended.seconds
        lines = {}
        told = subprocess.run(["gcov", "--json-format", "--stdout"] + self.counts(), capture_output=True, text=True,
                              cwd=self.folder).stdout
        for text in told.splitlines():
            for file in json.loads(text)["files"]:
                name = name_in_tree(file["file"], root)
                if name.startswith(WATCHED):
                    reached = {line["line_number"] for line in file["lines"] if line["count"]}
                    lines.setdefault(name, set()).update(reached)
        return {"passed": ended.code == 0, "seconds": round(seconds, 3),
                "lines": {name: sorted(reached) for name, reached in lines.items() if reached}}


def measure(root, build, work, workers, known, keep):
    """Returns {"program filter": {"seconds", "lines": {file: [numbers]}}} of every test that passes. Known tests are not measured
    again. keep() gets the results from time to time, so that a stopped measurement can continue."""
    jobs = []
    for program in PROGRAMS:
        path = os.path.join(build, "tests", program, "test_" + program)
        if os.path.exists(path):
            jobs += [(program, path, suite, tests) for suite, tests in suites_of(path).items()]
    found, kept = {}, [0]  # and how many new units were saved
    free = [Worker(build, os.path.join(work, "counts%d" % number)) for number in range(workers)]

    def reached(program, path, chosen):
        name = program + " " + chosen
        if name in known:
            return known[name]
        worker = free.pop()
        try:
            return worker.run(path, chosen, root)
        finally:
            free.append(worker)

    def one(job):
        program, path, suite, tests = job
        by_test = any(program + " " + chosen in known for chosen in tests)
        if not by_test:
            whole = reached(program, path, suite)
            # A mutant runs all tests of a unit, so a slow suite is measured test by test. So is a suite with a failing test.
            by_test = program not in BY_SUITE and len(tests) > 1 and (whole["seconds"] > QUICK or not whole["passed"])
        units = {chosen: reached(program, path, chosen) for chosen in tests} if by_test else {suite: whole}
        found.update({program + " " + chosen: unit for chosen, unit in units.items()})
        added = len(found.keys() - known.keys())
        if added >= kept[0] + KEEP_EVERY:
            kept[0] = added
            keep({**known, **found})

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        list(pool.map(one, jobs))
    keep(dict(found))
    for name, test in sorted(found.items()):
        if not test["passed"]:
            print("skipped, because it fails without a mutant or takes longer than %d s: %s" % (LONGEST, name))
    return {name: test for name, test in found.items() if test["passed"]}
