"""How Sphinx makes a site of these documents: `make site`. A running service has them at /help."""

import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parents[1]))

from blueprints.help.documents import load_documents, load_sections

project = "Gatebell"
extensions = ["myst_parser"]
root_doc = "README"
html_theme = "furo"
html_title = "Gatebell"
html_favicon = "../static/logo.svg"
html_copy_source = False
#: Links lead to headings as GitHub and GitLab write them.
myst_heading_anchors = 4
#: Examples of JSON may leave things out.
suppress_warnings = ["misc.highlighting_failure"]

_LINK = re.compile(r"\[([^\]]+)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
#: A block of code with a file name. The names of commands are not shown.
_NAMED_BLOCK = re.compile(r"^```(?!sh )(\w+) (\S+)$", re.MULTILINE)


def _prepare(_app: Sphinx, name: str, source: list[str]) -> None:
    """Give the index its order, blocks their names, and make links to other files into text."""

    def kept(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), found[2]))
        is_known = path.removesuffix(".md") in load_documents() or path.startswith("images/")
        return found[0] if is_known else found[1]

    text = _LINK.sub(kept, source[0])
    text = _NAMED_BLOCK.sub(r"```{code-block} \1\n:caption: \2\n", text)
    source[0] = text + "".join(_toctrees(name))


def _toctrees(name: str) -> Iterator[str]:
    if name == root_doc:
        for section in load_sections():
            lines = [f"{topic.title} <{topic.name}>" for topic in section.topics]
            yield _toctree(section.title, lines)
    elif name == "adr/README":
        yield _toctree("", [f"/{each}" for each in load_documents() if each.startswith("adr/0")])


def _toctree(caption: str, lines: list[str]) -> str:
    options = f":caption: {caption}\n" if caption else ""
    listed = "\n".join(lines)
    return f"\n```{{toctree}}\n:hidden:\n{options}\n{listed}\n```\n"


def setup(app: Sphinx) -> None:
    """Connect this file to Sphinx."""
    app.connect("source-read", _prepare)
