"""Settings of Sphinx for scripts/docs. Its source folder is a copy of the tree, with the pages of api.py in api/.

Every Markdown file of the tree is a page. The order of the navigation is that of docs/README.md, the map. A page in docs/ that is
not on the map is in no list, which Sphinx reports.
"""
import glob
import os
import re

from pygments.lexers import TextLexer

BUILD = os.environ["STRATA_DOCS"]
SOURCE = os.path.join(BUILD, "source")
PAGES = sorted(name[:-3] for name in glob.glob("**/*.md", root_dir=SOURCE, recursive=True))


def read(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


project = "Strata"
extensions = ["myst_parser", "breathe"]
root_doc = "README"
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
highlight_language = "none"
html_theme = "furo"
html_title = "Strata"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_copy_source = False

breathe_projects = {"strata": os.path.join(BUILD, "doxygen/xml")}
breathe_default_project = "strata"
breathe_domain_by_extension = {"h": "c"}
breathe_show_define_initializer = True
breathe_show_enumvalue_initializer = True
# Names of the C library, members without a name, and the tags of structs, which are found by their typedefs.
headers = "".join(map(read, glob.glob("include/strata/*.h", root_dir=SOURCE)))
tags = sorted(set(re.findall(r"\bstruct (strata_\w+)", headers)))
nitpick_ignore_regex = [("c:identifier", r"u?int\d+_t|size_t|bool|UINT64_MAX|strata_\w+[.]@\d+|" + "|".join(tags))]


def toctree(options, pages):
    return "\n```{toctree}\n:hidden:\n:titlesonly:\n%s\n\n%s\n```\n" % (options, "\n".join("/" + page for page in pages))


def navigation():
    """The lists of the navigation: the sections of the map, the C interface, and the folders of the source."""
    sections = {"Overview": ["docs/README"]}
    caption = "Overview"
    for found in re.finditer(r"^\*\*(.*)\*\*$|\]\(([\w/-]+)\.md\)", read("docs/README.md"), re.M):
        caption = found.group(1) or caption
        pages = sections.setdefault(caption, [])
        if found.group(2) and "docs/" + found.group(2) not in pages:
            pages.append("docs/" + found.group(2))
    sections["C interface"] = ["include/strata/README", "api/strata"] + [page for page in PAGES if re.match("api/(?!strata$)", page)]
    listed = sum(sections.values(), [])
    sections["Source folders"] = [page for page in PAGES if "/" in page and page not in listed and not page.startswith("docs/")]
    return "".join(toctree(":caption: " + caption, pages) for caption, pages in sections.items())


def on_source(app, name, source):
    """Adds the navigation to the first page, and leads links to a public header to its page."""
    source[0] = re.sub(r"\]\((?:\.\./)*include/strata/(\w+)\.h\)", r"](/api/\1.md)", source[0])
    folder = os.path.dirname(name)
    if name == root_doc:
        source[0] += navigation()
    elif re.match("docs/.*/README$", name):
        source[0] += toctree("", [page for page in PAGES if os.path.dirname(page) == folder and page != name])


def setup(app):
    app.add_lexer("csv", TextLexer)
    app.connect("source-read", on_source)
