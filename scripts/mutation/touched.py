"""Which tests reach which lines: every test of the coverage build is run once, and gcov is asked what it reached."""
import concurrent.futures
import functools
import json
import os
import re
import shutil
import subprocess

import bounded

# The programs whose tests may kill a mutant.
PROGRAMS = ["platform", "sim", "trace", "cuda", "mechanism", "allocation", "async", "graphs", "strategy", "config", "outside", "decorators",
            "recorder", "records", "ranges", "planning", "replay", "facade", "chunked", "naive", "bfc", "caching", "checker", "peers", "torture", "mutated", "security",
            "fuzz", "tools", "conformance", "share", "pause", "integration"]
# Those whose tests do not: the rules of the house, the installed package, the C++ headers and the real GPU reach no line that others do
# not, one test of test_failures runs a program thousands of times, and the modules are loaded by others.
LEFT_OUT = ["house", "install", "gpu", "cpp", "failures", "modules", "python"]
# Of these a whole suite counts as one test: each holds a suite for every layer, of many small tests.
BY_SUITE = {"conformance"}
# These run the command too.
BY_COMMAND = {"tools", "security"}
# What is mutated: the library, and the replay, whose figures every decision rests on. conform/, programs/, torture/ and tools/ are left out:
# they are instruments, which plant faults of their own in what they measure (tests/mutated, tests/checker), and what they print. So is
# integration/preload/, which runs inside other programs.
WATCHED = ("platform/", "trace/", "allocation/", "planning/", "strategy/", "config/", "facade/", "replay/",
           "integration/doors/")
# Where the compiler leaves its notes of those: the folders' own objects, and the sources that a test program borrows.
NOTES = re.compile(r"/(?:strata_(?:%s)\.dir|test_\w+\.dir/__)(?:/|$)" % "|".join(folder.split("/")[0] for folder in WATCHED))
LONGEST = 120
KEEP_EVERY = 50  # tests


def unnamed_programs(root):
    """The programs of tests that are in neither list."""
    folders = sorted(os.listdir(os.path.join(root, "tests")))
    return [name for name in folders if name not in PROGRAMS + LEFT_OUT
            and os.path.exists(os.path.join(root, "tests", name, "CMakeLists.txt"))]


@functools.lru_cache(None)
def name_in_tree(path, root):
    """The file of the tree that gcov means: a compiler cache may have made its path relative to anywhere."""
    parts = os.path.normpath(path).split("/")
    for at in range(len(parts)):
        name = "/".join(parts[at:])
        if parts[at] not in ("", "..") and os.path.isfile(os.path.join(root, name)):
            return name
    return ""


def tests_of(program, path):
    """The filters by which the tests of a program are run."""
    listed = subprocess.run([path, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    suite, filters = "", []
    for line in listed.splitlines():
        if line[:1] not in (" ", "") and line.rstrip().endswith("."):
            suite = line.strip()
            if program in BY_SUITE:
                filters.append(suite + "*")
        elif line.startswith("  ") and program not in BY_SUITE:
            filters.append(suite + line.split("#")[0].strip())
    return filters


class Worker:
    """A folder for the counts of one run at a time; gcov wants the notes (.gcno) beside them."""

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
        # Without the start, and the writing of the counts at the end; and however busy the machine is.
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
    """{"program filter": {"seconds", "lines": {file: [numbers]}}} of every test that passes; those known stay as they are. What is
    found is handed to keep() now and then, so that a measuring that is stopped goes on where it was."""
    jobs = []
    for program in PROGRAMS:
        path = os.path.join(build, "tests", program, "test_" + program)
        if os.path.exists(path):
            jobs += [(program, path, chosen) for chosen in tests_of(program, path)]
    found = {program + " " + chosen: known[program + " " + chosen] for program, _, chosen in jobs
             if program + " " + chosen in known}
    jobs = [job for job in jobs if job[0] + " " + job[2] not in found]
    if not jobs:
        return found
    free = [Worker(build, os.path.join(work, "counts%d" % number)) for number in range(workers)]

    def one(job):
        program, path, chosen = job
        worker = free.pop()
        try:
            found[program + " " + chosen] = worker.run(path, chosen, root)
            if len(found) % KEEP_EVERY == 0:
                keep(dict(found))
        finally:
            free.append(worker)

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        list(pool.map(one, jobs))
    for name, test in sorted(found.items()):
        if not test["passed"]:
            print("left out, it fails without any mutant, or takes longer than %d s: %s" % (LONGEST, name))
    return {name: test for name, test in found.items() if test["passed"]}
