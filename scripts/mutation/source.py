"""A C scanner for scripts/mutants and scripts/coverage. It names functions and statements independently of place and layout."""
import collections
import re

Token = collections.namedtuple("Token", "text begin end")  # offsets in the file
# `begin` is the offset of its head in the file. The tokens are those of its body, without the braces.
Function = collections.namedtuple("Function", "path name tokens begin")
# kind: "if", "loop", "switch", "case", "return", "jump", "declaration" or "expression". `first` and `end` are token numbers,
# and `end` is one past the last. For a statement that contains others they describe only its head.
Statement = collections.namedtuple("Statement", "kind first end")

TOKEN = re.compile(r"""(?P<passed>\s+|/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:\\\n|[^\n])*)
                      |"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'
                      |[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*
                      |<<=|>>=|\.\.\.|->|\+\+|--|&&|\|\||[-+*/%&|^<>=!]=|<<|>>|.""", re.X | re.M | re.S)
CLOSES = {"(": ")", "[": "]", "{": "}"}
LOOPS = re.compile(r"for|while|[A-Z_]*EACH[A-Z_]*")  # the last alternative is for macros
JUMPS = ("break", "continue", "goto")
TYPE_WORDS = {"static", "const", "struct", "union", "enum", "unsigned", "signed", "_Atomic", "volatile", "register", "extern"}
ASSIGNS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}


def is_word(text):
    return text[:1].isalpha() or text[:1] == "_"


def tokens_of(text):
    return [Token(found.group(0), *found.span()) for found in TOKEN.finditer(text) if not found.group("passed")]


def closing(tokens, at):
    """Returns the number of the token that closes the bracket at `at`."""
    depth = 0
    for number in range(at, len(tokens)):
        depth += (tokens[number].text in CLOSES) - (tokens[number].text in CLOSES.values())
        if depth == 0:
            return number
    return len(tokens) - 1


def name_of(heading):
    """Returns the name of the function with this heading, or None if the tokens are no function heading."""
    if not heading or heading[-1].text != ")" or any(token.text in ASSIGNS for token in heading):
        return None
    at = 0
    while at < len(heading):
        if heading[at].text == "(":
            end = closing(heading, at)
            if end == len(heading) - 1:
                return heading[at - 1].text if at > 0 and is_word(heading[at - 1].text) else None
            at = end
        at += 1
    return None


def functions_of(path, text):
    tokens, since, at = tokens_of(text), 0, 0
    while at < len(tokens):
        if tokens[at].text == "{":
            end, name = closing(tokens, at), name_of(tokens[since:at])
            if name:
                yield Function(path, name, tokens[at + 1:end], tokens[since].begin)
                since = end + 1
            at = end
        elif tokens[at].text == ";":
            since = at + 1
        at += 1


def simple_kind(tokens):
    first = tokens[0].text
    if first == "return" or first in JUMPS:
        return "return" if first == "return" else "jump"
    if first in TYPE_WORDS or len(tokens) > 1 and is_word(first) and is_word(tokens[1].text):
        return "declaration"
    stars = 1
    while stars < len(tokens) and tokens[stars].text in ("*", "const"):
        stars += 1
    pointer = stars > 1 and is_word(first) and stars < len(tokens) and is_word(tokens[stars].text)
    return "declaration" if pointer else "expression"


def simple_end(tokens, at):
    while at < len(tokens) and tokens[at].text != ";":
        at = closing(tokens, at) if tokens[at].text in CLOSES else at
        at += 1
    return min(at + 1, len(tokens))


def statements_of(tokens):
    """Returns every statement of a body, outer before inner."""
    found, at = [], 0
    while at < len(tokens):
        text = tokens[at].text
        following = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if text in ("{", "}", "else", "do", ";"):
            at += 1
        elif text in ("if", "switch") or LOOPS.fullmatch(text):
            end = closing(tokens, at + 1) + 1
            found.append(Statement("loop" if LOOPS.fullmatch(text) else text, at, end))
            at = end
        elif text in ("case", "default"):
            end = next(number for number in range(at, len(tokens)) if tokens[number].text == ":") + 1
            found.append(Statement("case", at, end))
            at = end
        elif is_word(text) and following == ":":
            at += 2
        else:
            end = simple_end(tokens, at)
            found.append(Statement(simple_kind(tokens[at:end]), at, end))
            at = end
    return found


def joined(tokens):
    """Returns the tokens as one text, with spaces between words."""
    out = ""
    for token in tokens:
        out += (" " if out and re.match(r"\w", token.text) and re.match(r"\w", out[-1]) else "") + token.text
    return out


def told(tokens, statement):
    """Returns the name of a statement: "loop", "return STRATA_E_LIMIT", "call strata_lock", "set *hint", "count domain->epoch"."""
    own = tokens[statement.first:statement.end]
    words = [token.text for token in own]
    if statement.kind == "return":
        status = next((word for word in words if word.startswith("STRATA_E_")), None)
        call = len(words) > 2 and is_word(words[1]) and words[2] == "("
        return "return %s" % (status or words[1]) if status or call or len(words) == 3 else "return"
    if statement.kind == "jump":
        return words[0]
    if statement.kind not in ("declaration", "expression"):
        return statement.kind
    depth = 0
    for number, word in enumerate(words):
        depth += (word in CLOSES) - (word in CLOSES.values())
        if depth == 0 and word in ASSIGNS:
            left = own[:number]
            return "set %s" % (left[-1].text if statement.kind == "declaration" else joined(left))
        if depth == 0 and word in ("++", "--"):
            return "count %s" % joined(own[1:-1] if number == 0 else own[:number])
    if statement.kind == "declaration":
        return "declare"
    begin = 3 if words[:3] == ["(", "void", ")"] else 0
    if "(" in words[begin:]:
        return "call %s" % joined(own[begin:words.index("(", begin)])
    return "statement"
