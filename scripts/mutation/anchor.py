"""Finds the place of a row of `table`, `explained` or ../coverage.explained: a function in any file, and a place in it.

If several functions have the same name, the row names the file too: `guard.c validate`, or `decorators/guard.c validate`.
"""
import collections
import os
import re

import made
import source

FUNCTION = r"(?:[\w./-]+\.[ch] )?[A-Za-z_]\w*"
CHANGE = re.compile(r"(?:\S+ => \S+|drop (?:!|(?:call|set|count) \S.*?)|never if)(?: #[1-9]\d* of [1-9]\d*)?")


class Unfit(Exception):
    """A row no longer fits the tree."""


class Tree:
    """The functions of the library and the replay in one tree."""

    def __init__(self, root, folders, endings=(".c",)):
        self.by_name, self.texts = collections.defaultdict(list), {}
        for folder in folders:
            for top, _, names in os.walk(os.path.join(root, folder)):
                for name in sorted(names):
                    if name.endswith(endings):
                        self.add(os.path.relpath(os.path.join(top, name), root), os.path.join(top, name))

    def add(self, path, place):
        with open(place, encoding="utf-8") as file:
            self.texts[path] = file.read()
        for function in source.functions_of(path, self.texts[path]):
            self.by_name[function.name].append(function)

    def functions(self):
        return (function for name in sorted(self.by_name) for function in self.by_name[name])

    def find(self, said):
        file, _, name = said.rpartition(" ")
        found = [function for function in self.by_name.get(name, ()) if ("/" + function.path).endswith("/" + file if file else "")]
        if len(found) != 1:
            raise Unfit("there is no function %s" % said if not found else
                        "%s is in %s: say which" % (said, ", ".join(function.path for function in found)))
        return found[0]

    def name(self, function):
        """Returns the shortest name that find() accepts for the function."""
        others = [other for other in self.by_name[function.name] if other.path != function.path]
        parts = function.path.split("/")
        for length in range(len(parts) + 1):
            file = "/".join(parts[len(parts) - length:])
            if not any(("/" + other.path).endswith("/" + file if file else "") for other in others):
                return "%s %s" % (file, function.name) if file else function.name
        return "%s %s" % (function.path, function.name)

    def changes(self, function):
        return made.changes_of(function, self.texts[function.path])

    def change(self, function, name):
        """Returns the edits of the change with that name."""
        found = [change for change in self.changes(function) if change.name == name]
        if len(found) != 1:
            raise Unfit("%s has no change `%s`" % (function.name, name))
        return found[0].edits

    def replace(self, function, old, new):
        """Returns the edits that replace the tokens `old`, which must occur exactly once in the function."""
        wanted = [token.text for token in source.tokens_of(old)]
        words = [token.text for token in function.tokens]
        found = [at for at in range(len(words) - len(wanted) + 1) if words[at:at + len(wanted)] == wanted]
        if len(found) != 1:
            raise Unfit("%s has these tokens %d times, not once: %s" % (function.name, len(found), old))
        return [(function.tokens[found[0]].begin, function.tokens[found[0] + len(wanted) - 1].end, new)]


# ---- the table ----

# `changes` are ("change", its name) and ("tokens", the old tokens, the new tokens).
Row = collections.namedtuple("Row", "name function changes")


def row_of(block):
    """Returns the row, and an error of its form or None."""
    head, *lines = block.strip().split("\n")
    name, function, changes = head.split("] ", 1)[0], None, []
    for line in lines:
        mark, _, rest = line.partition(" ")
        if mark == "in" and not function and re.fullmatch(FUNCTION, rest):
            function = rest
        elif mark == "change" and CHANGE.fullmatch(rest):
            changes.append(("change", rest))
        elif mark == "-" and rest:
            fresh = not changes or changes[-1][0] != "tokens" or changes[-1][2] is not None
            before = "" if fresh else changes.pop()[1] + " "
            changes.append(("tokens", before + rest.strip(), None))
        elif mark == "+" and changes and changes[-1][0] == "tokens":
            _, old, new = changes.pop()
            changes.append(("tokens", old, rest.strip() if new is None else new + " " + rest.strip()))
        elif line.strip():
            return Row(name, function, changes), "what is `%s`?" % line
    whole = function and changes and all(change[-1] is not None for change in changes)
    return Row(name, function, changes), None if "] " in head and whole else "it wants a sentence, `in` and a change"


def rows_of(text):
    """Returns [(row, error of its form or None)] of the table."""
    found = [row_of(block) for block in re.split(r"^\[", text, flags=re.M)[1:]]
    times = collections.Counter(row.name for row, _ in found)
    return [(row, wrong or ("the name is taken twice" if times[row.name] > 1 else None)) for row, wrong in found]


def edits_of(tree, row):
    """Returns the function and the edits of a row."""
    function, edits = tree.find(row.function), []
    for kind, *said in row.changes:
        edits += tree.change(function, *said) if kind == "change" else tree.replace(function, *said)
    edits.sort()
    if any(one[1] > other[0] for one, other in zip(edits, edits[1:])):
        raise Unfit("its changes overlap")
    return function, edits


# ---- explanations ----

def explained(text):
    """Returns {"FUNCTION: CHANGE": reason}, and the list of malformed keys."""
    told, wrong, key = {}, [], None
    for row in text.split("\n"):
        if row.startswith(" "):
            if key:
                told[key] = (told[key] + " " + row.strip()).strip()
        elif row and not row.startswith("#"):
            key = row.strip()
            place, _, change = key.partition(": ")
            if key in told or not re.fullmatch(FUNCTION, place) or not CHANGE.fullmatch(change):
                wrong.append(key)
            told[key] = ""
    return told, wrong + [key for key, reason in told.items() if not reason]
