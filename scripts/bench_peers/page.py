"""Writes docs/benchmarks.md from the figures of scripts/bench-peers."""
import collections
import concurrent.futures
import json
import os
import re
import shutil
import statistics
import subprocess

OURS = "strata"
PAIRS = [("hot", "64 KiB"), ("small", "512 B"), ("large", "20 MiB"), ("lent", "64 KiB, borrowed"), ("remote", "64 KiB, freed by another thread")]
HEAD, LESS = 1.05, 1.001 # factors by which a peer must be better in time and in bytes; for instructions any difference counts
GROWTH_PRESETS = ["strata", "strata-malloc", "pytorch"]
GROWTH_NUMBERS = {"chunks": (1000, 10000), "streams": (200, 2000), "pools": (8, 64)}
TIMED_STREAMS, TIMED_RUNS = (400, 4000), 3 # more streams than fit under valgrind
GROWTH_QUICK = {"chunks": (10, 20), "streams": (4, 8), "pools": (2, 4)}
NAMES = {"chunks": "blocks of a chunk's size", "streams": "streams", "pools": "graph pools"}

# Patterns of programs, workloads and figures, and the reason. The first row that matches is printed.
REASONS = [
    ("RMM.*|CUB.*|glibc|mimalloc|jemalloc", "trace streams-.*", "ns|instructions",
     "it has no call for borrows and gets none, while `strata` tracks each borrow, records events for it and waits for them"),
    ("glibc|mimalloc|jemalloc", ".*", "ns|instructions",
     "it serves host memory: it has no streams, and needs no lock if a thread has its own cache. Its metadata is in the block or next "
     "to it, which is not possible in GPU memory"),
    ("CUB.*|RMM.*", "large|live.*|trace.*", "ratio",
     "it caches nothing above its largest bin or from its upstream: each such "
     "pair makes two device calls, which are almost free in this fake driver"),
    ("CUB", "live.*|trace.*", "ns|instructions",
     "it calls the driver at nearly every request, and a call of this fake driver takes tens of nanoseconds; a real one takes microseconds"),
    ("CUB.*", "live.*|trace.*|[0-9]+ thread.*", "ns|instructions",
     "a bin takes any block of its size and never splits or coalesces: less work and more memory"),
    ("RMM binning", ".*", "ns|instructions", "a bin serves whole blocks for any request: it never splits or coalesces, and holds much more memory"),
    ("RMM pool", ".*", "ns|instructions", "with few free blocks, its sorted list is the fastest; its cost grows with their number"),
    ("RMM arena", ".*", "ns|instructions", "one superblock serves all requests and is found by address; the whole arena was allocated before"),
    ("PyTorch.*", "lent", "ns|instructions", "it records one event per free and queries only the oldest"),
    ("PyTorch, expandable", "live.*|trace.*", "ratio",
     "it maps memory in steps of 2 and 20 MiB on demand at the end of one range; `strata` maps larger pieces, with fewer calls"),
    ("PyTorch", "live.*|trace.*", "ratio", "its segment sizes fit these requests better by chance; with others it holds more"),
]


# ---- growth ----

def counted(words):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=growth_measured"] + words,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    found = re.search(r"Collected : (\d+)", done.stderr)
    return int(found.group(1)) if found and done.returncode == 0 else None


def growth(program, quick):
    """Returns {"counted": [(step, of, few, many, preset, instructions among few, among many)],
    "timed": [(step, few, many, ns each, ns each)]}, or None without valgrind."""
    if not shutil.which("valgrind"):
        return None
    print("counting growth", flush=True)
    listed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    steps = [line.split() for line in listed.splitlines()]
    numbers = GROWTH_QUICK if quick else GROWTH_NUMBERS
    cells = [(step, of, *numbers[of], preset) for step, of in steps for preset in (GROWTH_PRESETS[:1] if quick else GROWTH_PRESETS)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        few = list(pool.map(lambda cell: counted([program, cell[0], cell[4], str(cell[2])]), cells))
        many = list(pool.map(lambda cell: counted([program, cell[0], cell[4], str(cell[3])]), cells))
    rows = [(*cell, *counts) for cell, *counts in zip(cells, few, many)]
    return {"counted": rows, "timed": [(step, *TIMED_STREAMS, *(timed_step(program, step, of) for of in TIMED_STREAMS))
                                       for step, of in steps if of == "streams" and not quick]}


def timed_step(program, step, among):
    runs = []
    for _ in range(TIMED_RUNS):
        done = subprocess.run([program, step, OURS, str(among), "--json"], check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout)["ns_each"])
    return statistics.median(runs)


def growth_section(told):
    lines = ["", "## As numbers grow", ""]
    if told is None:
        return lines + ["Not counted: valgrind is missing."]
    rows = told["counted"]
    lines += ["Instructions of a whole step (`lab/bench/growth`, counted by callgrind) for each chunk, stream or pool, among many; in brackets the "
              "ratio to the same figure among few. The ratio of a proportional step is 1 or less, that of a quadratic one %s." %
              ", ".join("%d (%s)" % (many // few, NAMES[of]) for of, (few, many) in GROWTH_NUMBERS.items())]
    presets = list(collections.OrderedDict.fromkeys(row[4] for row in rows))
    for of in collections.OrderedDict.fromkeys(row[1] for row in rows):
        mine = [row for row in rows if row[1] == of]
        lines += ["", "%s, %s against %s:" % (NAMES[of][0].upper() + NAMES[of][1:], format(mine[0][3], ","), format(mine[0][2], ",")), "",
                  "| step | " + " | ".join(presets) + " |", "|---|" + "---:|" * len(presets)]
        for step in collections.OrderedDict.fromkeys(row[0] for row in mine):
            cells = []
            for row in mine:
                if row[0] != step:
                    continue
                _, _, few, many, _, among_few, among_many = row
                cells.append("-" if not among_few or not among_many else
                             "%s (%.2f)" % (format(among_many / many, ",.0f"), (among_many / many) / (among_few / few)))
            lines.append("| %s | %s |" % (step.split("-", 1)[1] if of != "chunks" else step, " | ".join(cells)))
    if told["timed"]:
        lines += ["", "With more streams than valgrind can run, microseconds for each stream of `%s`, medians of %d runs:" % (OURS, TIMED_RUNS), "",
                  "| step | among %s | among %s |" % tuple(format(count, ",") for count in TIMED_STREAMS), "|---|---:|---:|"]
        lines += ["| %s | %.1f | %.1f |" % (step.split("-", 1)[1], few / 1000, many / 1000) for step, _, _, few, many in told["timed"]]
    worst = max((row for row in rows if row[5] and row[6]), key=lambda row: row[6] / row[3] / (row[5] / row[2]), default=None)
    if worst:
        lines += ["", "The largest growth is `%s` of `%s`: %.2f times as many for each among %s as among %s." %
                  (worst[0], worst[4], worst[6] / worst[3] / (worst[5] / worst[2]), format(worst[3], ","), format(worst[2], ","))]
    return lines


# ---- tables ----

def number(value, digits=0):
    return "-" if value is None else format(value, ",.%df" % digits)


def ratio(cell):
    return cell["reserved"] / cell["requested"] if cell.get("reserved") and cell.get("requested") else None


def timed(cell):
    if "none" in cell:
        return "-"
    return number(cell["ns"], 1) + (" (%s)" % number(cell["instructions"]) if cell.get("instructions") is not None else "")


class Table:
    def __init__(self, told):
        self.told, self.notes = told, []

    def cell(self, label, key):
        return self.told["cells"].get("%s/%s" % (label, key), {"none": "not run"})

    def note(self, label, name, cell):
        if "none" in cell:
            self.notes.append("%s, %s: %s" % (label, name, cell["none"]))

    def rows(self, columns, shown):
        """Returns one row for each peer. `columns` are (key, name). Notes below the table list missing cells."""
        self.notes = []
        columns = [(key, name) for key, name in columns if key in self.told["workloads"]]
        if not columns:
            return ["Not run."]
        lines = ["| | " + " | ".join(name for _, name in columns) + " |", "|---|" + "---:|" * len(columns)]
        for label in self.told["labels"]:
            cells = [self.cell(label, key) for key, _ in columns]
            for (_, name), cell in zip(columns, cells):
                self.note(label, name, cell)
            lines.append("| %s | %s |" % (label, " | ".join(shown(cell) for cell in cells)))
        return lines + self.footnotes()

    def footnotes(self):
        """Returns the notes, grouped by reason."""
        grouped = collections.OrderedDict()
        for note in self.notes:
            where, reason = note.split(": ", 1)
            grouped.setdefault(reason, []).append(where)
        return [""] + ["- %s: %s." % (reason[0].upper() + reason[1:], "; ".join(wheres)) for reason, wheres in grouped.items()] if grouped else []

    def trace(self, key):
        self.notes = []
        lines = ["| | ns (instructions) per row | device calls, first pass | reserved over requested |", "|---|---:|---:|---:|"]
        for label in self.told["labels"]:
            cell = self.cell(label, key)
            self.note(label, "it", cell)
            lines.append("| %s | %s | %s | %s |" % (label, timed(cell), number(cell.get("calls_before")), number(ratio(cell), 4)))
        return lines + self.footnotes()


# ---- peers that are ahead ----

def reason_of(label, key, figure):
    for labels, keys, figures, reason in REASONS:
        if re.fullmatch(labels, label) and re.fullmatch(keys, key) and figure in figures.split("|"):
            return reason
    return None


def is_ahead(peer, ours, figure):
    if "none" in peer or "none" in ours:
        return False
    if figure == "ratio":
        return ratio(peer) is not None and ratio(ours) is not None and ratio(peer) * LESS < ratio(ours)
    if peer.get("instructions") and ours.get("instructions"):
        return figure == "instructions" and peer["instructions"] < ours["instructions"]
    return figure == "ns" and peer["ns"] * HEAD < ours["ns"]


def ahead(told):
    """Returns {(label, reason): [(key, figure)]} of peers that are better than the default, and the cases without a reason. If
    instructions were counted they decide, because times also depend on the machine."""
    table, found, unexplained = Table(told), collections.OrderedDict(), []
    for label in told["labels"]:
        if told["programs"][label] == "strata":
            continue
        for key in told["workloads"]:
            for figure in ("instructions", "ns", "ratio"):
                if not is_ahead(table.cell(label, key), table.cell(OURS, key), figure):
                    continue
                reason = reason_of(label, key, figure)
                if reason:
                    found.setdefault((label, reason), []).append((key, figure))
                else:
                    unexplained.append("%s, %s, %s" % (label, key, figure))
    return found, unexplained


def figure_of(cell, figure):
    return {"ratio": lambda: "%.3f" % ratio(cell), "ns": lambda: "%s ns" % number(cell["ns"], 1),
            "instructions": lambda: number(cell["instructions"])}[figure]()


def ahead_section(told):
    found, unexplained = ahead(told)
    table = Table(told)
    lines = ["", "## Where a peer is ahead", "",
             "Compared with `strata`: fewer instructions if they are counted, else %d %% less time; or %.1f %% less reserved memory." %
             (round(100 * (HEAD - 1)), 100 * (LESS - 1)), ""]
    if not found:
        lines.append("Nowhere.")
    for (label, reason), places in found.items():
        rows = ["%s %s against %s" % (key, figure_of(table.cell(label, key), figure), figure_of(table.cell(OURS, key), figure))
                for key, figure in places]
        lines.append("- **%s**, because %s: %s." % (label, reason, "; ".join(rows)))
    lines += ["- %s: no reason is known." % line for line in unexplained]
    return lines, unexplained


# ---- presets that reproduce a peer ----

def likeness(told):
    """Returns lines that compare the reserved bytes of presets that reproduce PyTorch's allocator with the real one."""
    table, lines = Table(told), []
    for preset, label in (("preset pytorch", "PyTorch"), ("preset pytorch-expandable", "PyTorch, expandable")):
        pairs = [(table.cell(preset, key), table.cell(label, key)) for key in told["workloads"]
                 if key.startswith(("trace", "live"))]
        pairs = [(mine, its) for mine, its in pairs if ratio(mine) and ratio(its)]
        if not pairs:
            continue
        equal = sum(mine["reserved"] == its["reserved"] for mine, its in pairs)
        off = max(abs(mine["reserved"] / its["reserved"] - 1) for mine, its in pairs)
        lines.append("- `%s` reserves exactly as many bytes as the real one in %d of %d workloads of many live blocks and traces%s." %
                     (preset.split()[1], equal, len(pairs), "" if equal == len(pairs) else "; the largest difference is %.2f %%" % (100 * off)))
    return ["", "The presets that reproduce PyTorch's allocator, compared with it:", ""] + lines if lines else []


# ---- the page ----

def origins(told):
    lines = ["| peer | from |", "|---|---|"]
    for label in told["labels"]:
        origin = told["preloads"].get(label)
        lines.append("| %s | %s |" % (label, origin + ", in place of the C library's" if origin else
                                      told["from"][told["programs"][label]]))
    return lines + ["| %s | **not available**: %s |" % (label, why) for label, why in told["absent"]]


def heading(told):
    fake = told["driver"] == "fake"
    lines = ["# Strata beside other allocators", "",
             "`scripts/bench-peers` makes this page in one run; nothing here is written by hand. The programs are in lab/bench/peers. No peer's code "
             "is in this tree: the script fetches the available peers.", "",
             "%s, %s; the tree was at %s when the run ended; `%s`. Times are medians of %d rounds in which all peers take turns, with three runs each in a "
             "process of its own. %sCallgrind counts the instructions of one operation (in brackets): they are exact and do not depend on the machine." %
             (told["date"], told["cpu"], told["revision"], told["command"], told["rounds"],
              "The machine also did other work (a load of %.1f before the first run), so use the times as ratios. " % told["load"]
              if told["load"] > .7 else ""), ""]
    if fake:
        lines.append("The driver is lab/bench/peers/driver: it only returns addresses, in tens of nanoseconds per call, and borrows end at once. A real "
                     "driver takes microseconds to milliseconds, so this flatters a peer that calls it often; the tables show the calls where they matter.")
    else:
        lines.append("The driver is the machine's own.")
    return lines + ["", *origins(told), ""]


def page(told):
    table = Table(told)
    lives = [key for key in told["workloads"] if key.startswith("live")]
    lines = heading(told)
    lines += ["## A pair", "", "One allocation and its free: ns (instructions). The peer gets borrows before the free. Blocks that another thread frees "
              "are allocated a thousand at a time.", ""]
    lines += table.rows(PAIRS, timed)
    lines += ["", "## Among many live blocks", "", "A random block is freed, and one of 512 x 2^(17u) bytes, u uniform, is allocated (an eighth of that among "
              "1,000,000): ns (instructions) per pair.", ""]
    lines += table.rows([(key, key.split()[1]) for key in lives], timed)
    lines += ["", "Peak reserved device memory over peak live bytes:", ""]
    lines += table.rows([(key, key.split()[1]) for key in lives], lambda cell: number(ratio(cell), 3))
    lines += ["", "## Threads", "", "Pairs of 64 KiB by all threads at once: ns per pair, which is the time from the first start to the last end over all "
              "pairs.", ""]
    lines += table.rows([(key, key) for key in told["workloads"] if "thread" in key], timed)
    lines += ["", "## Traces", "", "The requests, frees and borrows of recorded programs (traces/), without their work and waits; a peer without a call for borrows "
              "gets none. Times are of later passes; calls and bytes are of all passes."]
    for key in told["workloads"]:
        if key.startswith("trace "):
            lines += ["", "### " + key.split()[1], ""] + table.trace(key)
    lines += likeness(told)
    section, unexplained = ahead_section(told)
    lines += section + growth_section(told["growth"])
    return "\n".join(lines) + "\n", unexplained


if __name__ == "__main__":
    import sys
    print(page(json.load(sys.stdin))[0], end="")
