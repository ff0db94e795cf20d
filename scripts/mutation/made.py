"""Mutants made by rule: every place in a function's body where an operator, a constant or a statement can be changed."""
import re

# What is looked for (in code with its strings and comments blanked) and what stands there instead.
OPERATORS = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
    (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "), (r" & ", " | "), (r" \| ", " & "),
    (r" \* ", " / "), (r" \+= ", " -= "), (r" -= ", " += "), (r" \|= ", " &= "), (r"\+\+", "--"), (r"(?<!-)--(?!-)", "++"),
    (r"!(?=[a-z(*])", ""), (r" << ", " >> "), (r" >> ", " << "),
]
CONSTANTS = [(r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"\b0\b(?![xu.])", "1"), (r"\b([1-9][0-9]*)\b(?![u.])", None)]
# A call, an assignment or a count, whole on one line: no declaration, no return.
STATEMENT = re.compile(r"^\s+(?!return\b|goto\b|break\b|continue\b|if\b|for\b|while\b|else\b|switch\b|case\b|do\b)"
                       r"(?:\(void\))?(?:\*|\+\+|--)?[A-Za-z_][\w.>\-\[\]()*&, ]*?"
                       r"(?:(?<=\w)\(|\s?(?:[-+|&^]|<<|>>)?=\s|\+\+|--|;).*;\s*$")
DECLARATION = re.compile(r"^\s+(?:static |const |struct |unsigned |_Atomic )*[A-Za-z_]\w*(?: \*+(?:const )?| )[A-Za-z_]\w*(?:\[.*\])*(?: =|;|,)")
CONDITION = re.compile(r"^(\s+(?:else |\} else )?if \()")
# Room for text that is made here and always shorter: a letter more changes nothing that anybody could see.
ROOM = re.compile(r"^\s+(?:static )?char \w+\[\d+\]")
PASSED_OVER = ("strata_fail", "FAIL", "printf", "corrupt(", "__builtin_prefetch", "(void)self", "(void)path", "(void)base",
               "(void)context", "(void)stream", "(void)unused")


def blanked(line, in_comment):
    """The line with what is in quotes or comments turned into spaces; and whether a comment goes on behind it."""
    out, at, quote = [], 0, None
    while at < len(line):
        two = line[at:at + 2]
        if in_comment:
            if two == "*/":
                in_comment, at = False, at + 2
                out.append("  ")
                continue
            out.append(" ")
        elif quote:
            if line[at] == "\\":
                out.append("  ")
                at += 2
                continue
            if line[at] == quote:
                quote = None
            out.append(" ")
        elif two == "/*":
            in_comment, at = True, at + 2
            out.append("  ")
            continue
        else:
            if line[at] in "\"'":
                quote = line[at]
            out.append(" " if quote else line[at])
        at += 1
    return "".join(out), in_comment


def bodies(lines):
    """(first, last, name) of each function's body, line numbers from 0: in the tree's style it ends with "}" at column 0."""
    first, name = None, ""
    for number, line in enumerate(lines):
        if first is None and line.rstrip().endswith(") {") and not line.startswith("#"):
            back = number
            while back > 0 and lines[back][:1] in (" ", "\t"):
                back -= 1
            if re.match(r"[A-Za-z_]", lines[back]):
                first, name = number + 1, re.search(r"\w*(?=\()", lines[back]).group(0)
        elif first is not None and line.startswith("}"):
            yield first, number, name
            first = None


def changes_of(line, code):
    """Every changed form of one line."""
    room = ROOM.match(code)
    for pattern, instead in OPERATORS + CONSTANTS:
        for found in re.finditer(pattern, code):
            if room and found.start() < room.end():
                continue
            put = instead if instead is not None else str(int(found.group(0)) + 1)
            yield line[:found.start()] + put + line[found.end():]
    if STATEMENT.match(code) and not DECLARATION.match(code):
        yield re.match(r"\s*", line).group(0) + ";"
    condition = CONDITION.match(code)
    if condition:
        yield line[:condition.end()] + "false && " + line[condition.end():]


def candidates(path, text):
    """(path, function, line number from 1, the line, its changed form) for a whole file."""
    lines = text.split("\n")
    inside = {}
    for first, last, name in bodies(lines):
        inside.update({number: name for number in range(first, last)})
    in_comment = False
    for number, line in enumerate(lines):
        code, in_comment = blanked(line, in_comment)
        if number not in inside or code.lstrip().startswith("#") or any(word in code for word in PASSED_OVER):
            continue
        for changed in changes_of(line, code):
            if changed != line:
                yield path, inside[number], number + 1, line, changed
