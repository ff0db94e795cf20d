#!/usr/bin/env python3
"""Makes the pages of the C interface from the public headers, whose plain comments are its manual.

    docs/site/api.py HEADER          prints a header with comments of Doxygen's form, as the INPUT_FILTER of docs/site/Doxyfile
    docs/site/api.py --pages XML OUT writes a page for each header, from Doxygen's XML, in the order of the source

The filter keeps each line in its place, so a warning names the line of the header. It reads these forms:

    /* ---- title ---- text */       a heading of the page, and text below it
    /* text */ and an empty line     text of the page: a Doxygen page
    /* text */ and a declaration     documentation of the declaration
    declaration; /* text */          the same
    #define STRATA_X_MAP(X) ...      rows, which become members with the last string of each row
"""
import ast
import os
import re
import sys
import xml.etree.ElementTree as xml

HEADERS = "include/strata"
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*(?P<text>.*?)\*/', re.S)
HEADING = re.compile(r"\s*-{4,} (?P<title>.*?) -{4,}")
DECLARED = re.compile(r"^STRATA_API [^;{]*?\b(?P<name>strata_\w+)\([^;{]*;$", re.M)


# ---- the filter: comments ----

def markup_line(line):
    """Escapes what Doxygen or Markdown takes as a command, outside quoted code. Names of functions become links."""
    parts = re.split(r"(`[^`]*`)", line)
    for index in range(0, len(parts), 2):
        part = re.sub(r"([\\@<>#%&])", r"\\\1", parts[index]).replace('"', "&quot;")
        part = re.sub(r"\*(?!\w[\w ]*\w\*)(?<!\w\*)|(?<=\w)\*(?=\()", r"\\*", part)
        part = re.sub(r"(?<![\w./])(strata_\w+\(\))", r"#\1", part)
        parts[index] = re.sub(r"\bdocs/([\w-]+)\.md", r"[docs/\1.md](../docs/\1.html)", part)
    return "".join(parts)


def markup(lines):
    """Returns the lines in Doxygen's Markdown. Indented lines are pictures or code. "Name   text" in columns is an item of a list."""
    made, column, shift, code = [], 0, 0, None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        item = re.match(r"(?P<name>[A-Z][A-Za-z, ]*?) {2,}(?P<text>\S.*)$", line)
        title = re.match(r"(?P<name>[A-Z][A-Z ]+\.) (?P<text>.*)", line)
        listed = column and indent == column or indent >= 4 and (shift or line.lstrip().startswith("- "))
        if not line:
            made.append("")
            continue
        if indent >= 4 and not listed:
            if code is None:
                made[-1] += " @verbatim"
            code, column = len(made), 0
            made.append(line[4:])
            continue
        if code is not None:
            made[code] += " @endverbatim"
            code = None
        if item:
            column, shift = item.start("text"), 0
            made.append("- **%s:** %s" % (item.group("name"), markup_line(item.group("text"))))
        elif title:
            column = shift = 0
            if made and made[-1]:
                made[-1] += " @break"
            made.append("<b>%s</b> %s" % (title.group("name"), markup_line(title.group("text"))))
        elif listed:
            shift = 0 if column else shift or indent - 2
            made.append(markup_line(line[shift:] if shift else "  " + line.lstrip()))
        else:
            if shift and made[-1]:
                made[-1] += " @break"
            column = shift = 0
            made.append(markup_line(line))
    if code is not None:
        made[code] += " @endverbatim"
    return made


def begins_line(text, match):
    return not text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()


def is_apart(text, match):
    """Returns True if the comment belongs to no declaration: it is the first one, or an empty line follows."""
    last = re.match(r"[ \t]*\n[ \t]*(\n|#endif)", text[match.end():])
    return begins_line(text, match) and bool(last or not text[:match.start()].strip())


def notes(text):
    """Yields the line, the title (or None) and the text of each heading and of each comment apart."""
    for match in COMMENT.finditer(text):
        body = match.group("text")
        heading = body and HEADING.match(body)
        if heading or body and is_apart(text, match):
            body = body[heading.end():] if heading else body
            yield text.count("\n", 0, match.start()) + 1, heading and heading.group("title"), body.strip(" *\n")


def page_name(name, line):
    return "%s_%d" % (os.path.basename(name).replace(".h", ""), line)


def filter_comments(name, text):
    """Gives each comment Doxygen's form. The alias `apart` begins a page."""
    def form(match):
        body = match.group("text")
        if body is None:
            return match.group(0)
        begin, heading = "/** ", HEADING.match(body)
        if heading or is_apart(text, match):
            body = body[heading.end():] if heading else body
            begin = "/** @apart{%s} " % page_name(name, text.count("\n", 0, match.start()) + 1)
        elif not begins_line(text, match):
            begin = "/**< "
        body = re.sub(r": X\([^)]*\)\.", ".", body)
        body = re.sub(r"X\([^)]*\)[.:]?\s*(\w?)", lambda found: found.group(1).upper(), body)
        lines = [re.sub(r"^\s*\* ?", "", line).rstrip() if number else line.strip() for number, line in enumerate(body.split("\n"))]
        return begin + "\n".join(markup(lines)) + " */"
    return COMMENT.sub(form, text)


def refer_back(text):
    """A function directly after a documented one shares its comment, and refers to it."""
    made, end, documented = [], 0, None
    for match in DECLARED.finditer(text):
        between = text[end:match.start()]
        if between.rstrip(" ").endswith("*/\n"):
            documented = match.group("name")
        elif between != "\n":
            documented = None
        elif documented:
            between += "/** See #%s(). */ " % documented
        made += [between, match.group(0)]
        end = match.end()
    return "".join(made) + text[end:]


def complete_structs(text):
    """Joins each struct with its typedef, which may be declared before it or in another header."""
    whole = "".join(read(os.path.join(HEADERS, name)) for name in os.listdir(HEADERS))
    for tag in re.findall(r"^struct (strata_\w+) \{", whole, re.M):
        text = re.sub(r"^typedef struct %s %s_t;.*$" % (tag, tag), "", text, flags=re.M)
        text = re.sub(r"^struct %s \{(.*?)^\};" % tag, r"typedef struct %s {\1} %s_t;" % (tag, tag), text, flags=re.M | re.S)
    return text


# ---- the filter: tables of rows ----

def rows_of(body):
    """The arguments of each X(...) of a table. Adjacent strings are one argument."""
    token = re.compile(r'[\s\\]*(?:("(?:\\.|[^"\\])*")|([^\s"(),]+)|([(),]))')
    for match in re.finditer(r"\bX\(", body):
        position, arguments = match.end(), [""]
        while True:
            found = token.match(body, position)
            position = found.end()
            if found.group(3) == ")":
                break
            if found.group(3) == ",":
                arguments.append("")
            else:
                arguments[-1] += ast.literal_eval(found.group(1)) if found.group(1) else found.group(2)
        yield arguments


def expand_tables(text):
    """Writes the rows of each table where they become members, or as a list if the header does not use them."""
    tables = {}

    def table(match):
        name, lines = match.group("name"), match.group(0).count("\n")
        tables[name] = list(rows_of(match.group("body")))
        if re.search(r"^ +%s\(" % name, text, re.M):
            return "\n" * lines
        rows = ["- **%s:** %s" % (row[0], markup_line(row[-1])) for row in tables[name]]
        return "/** %s */\n#define %s(X)" % ("\n".join(rows), name) + "\n" * (lines - len(rows))

    def members(match):
        names = [name.strip() for name in match.group("names").split(",")]
        made = []
        for row in tables[match.group("table")]:
            member = re.sub(r"(?:\s*##\s*)?\b(%s)\b" % "|".join(names), lambda found: dict(zip(names, row))[found.group(1)],
                            match.group("member"))
            made.append("%s /**< %s */" % (member, markup_line(row[-1])))
        return " ".join(made) + "\n\n\n"

    text = re.sub(r"^#define (?P<name>STRATA_\w+_MAP)\(X\)(?P<body>.*\\\n(?:.*\\\n)*.*\n)", table, text, flags=re.M)
    return re.sub(r"^#define (?P<macro>\w+)\((?P<names>[^)]*)\) (?P<member>.*)\n +(?P<table>\w+_MAP)\((?P=macro)\)\n#undef (?P=macro)\n",
                  members, text, flags=re.M)


# ---- the pages ----

DIRECTIVES = {"function": "doxygenfunction", "enum": "doxygenenum", "typedef": "doxygentypedef", "define": "doxygendefine"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def declarations(folder, name):
    """Yields the line and the directive of each declaration of a header."""
    compound = xml.parse(os.path.join(folder, name.replace(".h", "_8h.xml"))).getroot().find("compounddef")
    for member in compound.iter("memberdef"):
        line, called = int(member.find("location").get("line")), member.findtext("name")
        yield line, DIRECTIVES[member.get("kind")], called
    for inner in compound.findall("innerclass"):
        struct = xml.parse(os.path.join(folder, inner.get("refid") + ".xml")).getroot().find("compounddef")
        if "." not in inner.text and "@" not in inner.text:
            yield int(struct.find("location").get("line")), "doxygenstruct", inner.text


def page(folder, name):
    text = read(os.path.join(HEADERS, name))
    parts = [(line, title, body and "doxygenpage", page_name(name, line)) for line, title, body in notes(text)]
    parts += [(line, None, directive, called) for line, directive, called in declarations(folder, name)]
    for link in re.findall(r"\bdocs/[\w-]+\.md", text):
        if not os.path.exists(link):
            sys.exit("%s/%s: there is no %s" % (HEADERS, name, link))
    made = ["(%s)=\n# %s\n\n    #include <strata/%s>\n" % (name.replace(".h", "_8h"), name, name)]
    for line, title, directive, called in sorted(parts, key=lambda part: part[0]):
        if title:
            made.append("## %s\n" % (title[0].upper() + title[1:]))
        if directive:
            options = {"doxygenpage": ":content-only:\n", "doxygenstruct": ":members:\n:undoc-members:\n"}.get(directive, "")
            made.append("```{%s} %s\n%s```\n" % (directive, called, options))
    return "\n".join(made)


def main():
    if sys.argv[1] != "--pages":
        sys.stdout.write(expand_tables(complete_structs(refer_back(filter_comments(sys.argv[1], read(sys.argv[1]))))))
        return
    for name in sorted(os.listdir(HEADERS)):
        if name.endswith(".h"):
            with open(os.path.join(sys.argv[3], name.replace(".h", ".md")), "w", encoding="utf-8") as file:
                file.write(page(sys.argv[2], name))


main()
