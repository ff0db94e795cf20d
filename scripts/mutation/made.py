"""Changes of a function, at every place where a rule can change an operator, a constant or a statement. A line names each change:

    < => <=               an operator, or a constant: 0 => 1, true => false
    drop !                a negation
    drop call NAME        a statement that only calls, sets or counts; also `drop set NAME` and `drop count NAME`
    never if              a condition that never holds

If a function has several changes with one name, ` #2 of 5` follows: the number and the count of these changes. So a row does not
fit any more if a change of the function moves the places.
"""
import collections
import re

import source

# `edits` are (begin, end, new text) in the file, in order.
Change = collections.namedtuple("Change", "name edits")

OPERATORS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
             "&": "|", "|": "&", "*": "/", "+=": "-=", "-=": "+=", "|=": "&=", "++": "--", "--": "++", "!": "", "<<": ">>", ">>": "<<"}
# These can also have one operand, and `*` can be in a type. With two operands the code style has spaces on both sides.
WITH_TWO = {"+", "-", "&", "*"}
# Statements with these words only report a failure, or have no effect.
PASSED_OVER = {"strata_fail", "corrupt", "__builtin_prefetch"}


def passed_over(tokens):
    return any(token.text in PASSED_OVER or "FAIL" in token.text or token.text.endswith("printf") for token in tokens)


def has_two_operands(text, token):
    return text[token.begin - 1].isspace() and text[token.end].isspace()


def instead_of(text, token):
    """Returns the replacement of an operator or a constant, or None."""
    word = token.text
    if word in OPERATORS:
        return OPERATORS[word] if word not in WITH_TWO or has_two_operands(text, token) else None
    if word in ("true", "false"):
        return "false" if word == "true" else "true"
    return str(int(word) + 1) if re.fullmatch(r"0|[1-9][0-9]*", word) else None


def room(own):
    """Returns the tokens that set the length of a text in a declaration. They are skipped, because a longer buffer has no visible
    effect."""
    words = [token.text for token in own]
    if "char" in words and "[" in words:
        return range(words.index("["), source.closing(own, words.index("[")) + 1)
    return ()


def changes_of_statement(text, tokens, statement):
    own = tokens[statement.first:statement.end]
    if passed_over(own):
        return
    left_out = room(own) if statement.kind == "declaration" else ()
    for number, token in enumerate(own):
        instead = instead_of(text, token) if number not in left_out else None
        if instead is not None:
            name = "%s => %s" % (token.text, instead) if instead else "drop " + token.text
            yield Change(name, [(token.begin, token.end, instead)])
    name = source.told(tokens, statement)
    if statement.kind == "expression" and name != "statement" and not is_body_of_if(tokens, statement):
        yield Change("drop " + name, [(own[0].begin, own[-1].end, ";")])
    if statement.kind == "if":
        yield Change("never if", [(own[1].end, own[1].end, "false && ("), (own[-1].begin, own[-1].begin, ")")])


def is_body_of_if(tokens, statement):
    """Returns True if the statement is the whole body of an `if`. Dropping it would be the same change as `never if`."""
    return any(other.kind == "if" and other.end == statement.first for other in source.statements_of(tokens[:statement.first])) and \
        (statement.end >= len(tokens) or tokens[statement.end].text != "else")


def numbered(changes):
    total, met = collections.Counter(change.name for change in changes), collections.Counter()
    for change in changes:
        met[change.name] += 1
        several = total[change.name] > 1
        yield change._replace(name="%s #%d of %d" % (change.name, met[change.name], total[change.name])) if several else change


def changes_of(function, text):
    """Returns all changes by rule, in the order of the text."""
    found = []
    for statement in source.statements_of(function.tokens):
        found += changes_of_statement(text, function.tokens, statement)
    return list(numbered(found))


def edited(text, edits):
    for begin, end, new in reversed(edits):
        text = text[:begin] + new + text[end:]
    return text


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1
