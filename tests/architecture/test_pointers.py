"""Files, folders, modules and identifiers that documents, docstrings and comments name exist.

Text in backticks is checked as a name, and paths below a folder of the project are checked
everywhere. History is not checked: the changelog, and superseded ADRs. Guides are not checked
either, because they name files of their readers; other tests follow them.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from sys import stdlib_module_names
from typing import NamedTuple

from tests.architecture.test_shape import LAYERS, ROOT, files_of_the_project, path_of

CODE = (*LAYERS, "app.py", "wsgi.py", "gunicorn.conf.py", "migrations", "tests")
FOLDERS = (
    *LAYERS,
    "bench",
    "demo",
    "docs",
    "migrations",
    "scripts",
    "static",
    "templates",
    "tests",
)

#: Files and folders that the service or `make docs` creates: they are not in the repository.
MADE_LATER = ("build/", "bench/results/", "instance/")
#: Names that belong to other programs and to databases.
FOREIGN_NAMES = frozenset(
    {
        *("checkpoint_timeout", "max_wal_size", "pg_dump"),
        *("connect_query", "default_pool_size", "query_wait_timeout"),  # Settings of PgBouncer.
        "process_virtual_memory_bytes",  # A metric of prometheus_client.
    }
)
#: Types of other files than Python whose words documents may name. A patch has the words of a
#: tutorial.
_WITH_WORDS = frozenset({".html", ".js", ".toml", ".css", ".mjs", ".yml", ".yaml", ".patch"})

_SPAN = re.compile(r"`+([^`\n]+)`+")
_ROOTED_PATH = re.compile(rf"(?<![\w./:{{<-])(?:{'|'.join(FOLDERS)})/[\w./-]*[\w/]")
_FILE = re.compile(r"[\w./-]*\w\.(?:py|md|toml|html|css|js|mjs|ini|mako|txt)")
_MODULE = re.compile(rf"(?:python -m )?((?:{'|'.join(FOLDERS)})(?:\.\w+)+)")
_QUALIFIED = re.compile(r"([A-Za-z]\w*)\.(\w+)(?:\(.*\))?")
_IDENTIFIER = re.compile(r"(\w*[a-z]_[a-z]\w*|_*[A-Z][a-z0-9]+[A-Z]\w*|[a-z]\w*(?=\())(?:\(.*\))?")
#: Docstring at the beginning of a file or after a line that ends with a colon.
_DOCSTRING = re.compile(r'(\A|:(?:  #[^\n]*)?\n)\s*r?"""((?:.|\n)*?)"""')
#: Comment, without strings that contain a number sign.
_COMMENT = re.compile(r'(?:^|(?<=\s))#[^"\n]*$', re.MULTILINE)
_DEFINED = re.compile(
    r"^\s*(?:(?:class|(?:async )?def)\s+(\w+)|(\w+(?:, \w+)*)\s*(?::[^=\n]+)?=(?!=)"
    r"|(?:from\s+\S+\s+)?import\s+(\([^)]*\)|.*)|(\w+):)",
    re.MULTILINE,
)
_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
_QUOTED = re.compile(r'"([\w.]+)"')
_WORD = re.compile(r"\w+")
_RECORD = re.compile(r"\b(?:ADR|[Rr]ecord) (\d+)\b")
_PATCHED = re.compile(r"^\+\+\+ b/(.+)$", re.MULTILINE)
_STATUS = re.compile(r"^Status: replaced", re.MULTILINE)


class Source(NamedTuple):
    """A file of code, with its definitions and every word that it uses."""

    path: Path
    classes: frozenset[str]
    defined: frozenset[str]
    words: frozenset[str]
    #: Docstrings and comments.
    prose: str


def _documents() -> Iterator[tuple[str, str]]:
    for file in files_of_the_project():
        is_read = file.suffix in {".md", ".toml"} or file.name == "Makefile"
        text = file.read_text(encoding="utf-8") if is_read else ""
        is_about_us = file.name != "CHANGELOG.md" and file.parent.name != "guides"
        if text and is_about_us and not _STATUS.search(text):
            yield path_of(file), text


@cache
def _sources() -> tuple[Source, ...]:
    return tuple(
        _read(file)
        for file in files_of_the_project()
        if file.suffix == ".py" and file.relative_to(ROOT).parts[0] in (*CODE, "bench", "demo")
    )


def _read(file: Path) -> Source:
    text = file.read_text(encoding="utf-8")
    without_docstrings = _DOCSTRING.sub(r"\1", text)
    code = _COMMENT.sub("", without_docstrings)
    defined = {name for found in _DEFINED.finditer(code) for name in _WORD.findall(found[0])}
    words = {*_WORD.findall(code), *_QUOTED.findall(code)}
    docstrings = (found[2] for found in _DOCSTRING.finditer(text))
    prose = "\n".join((*docstrings, *_COMMENT.findall(without_docstrings)))
    classes = frozenset(_CLASS.findall(code))
    return Source(file, classes, frozenset(defined), frozenset(words), prose)


@cache
def _words() -> frozenset[str]:
    words: set[str] = set()
    for source in _sources():
        words |= source.words
    for file in files_of_the_project():
        if file.suffix in _WITH_WORDS or file.name == "Makefile":
            words.update(_WORD.findall(file.read_text(encoding="utf-8")))
    return frozenset(words)


@cache
def _owners() -> dict[str, list[Source]]:
    """Return the files that define a module, class or table, by its name."""
    found: dict[str, list[Source]] = defaultdict(list)
    for source in _sources():
        tables = source.words if source.path.parent.name == "models" else frozenset()
        classes = {name for name in source.classes if name[0].isupper()}
        for name in {source.path.stem} | classes | (tables - stdlib_module_names):
            found[name].append(source)
    return found


@cache
def _paths() -> frozenset[str]:
    files = {path_of(file) for file in files_of_the_project()}
    for patch in (ROOT / "docs").rglob("*.patch"):
        files.update(_PATCHED.findall(patch.read_text(encoding="utf-8")))
    folders = {parent.as_posix() for name in files for parent in Path(name).parents}
    return frozenset(files | folders)


@cache
def _file_names() -> frozenset[str]:
    return frozenset(path.rpartition("/")[2] for path in _paths())


@cache
def _records() -> frozenset[int]:
    return frozenset(int(file.name[:4]) for file in (ROOT / "docs" / "adr").glob("0*.md"))


def _is_there(path: str, where: str) -> bool:
    path = path.removeprefix("./").rstrip("/.")
    if "/" not in path:
        return path in _file_names()
    beside = (Path(where).parent / path).as_posix()
    return path in _paths() or beside in _paths() or f"{path}/".startswith(MADE_LATER)


def _is_module(name: str) -> bool:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        path, rest = "/".join(parts[:count]), parts[count:]
        if rest and f"{path}.py" in _paths():
            return _defines(ROOT / f"{path}.py", rest[0])
        if not rest and (path in _paths() or f"{path}.py" in _paths()):
            return True
    return False


def _defines(file: Path, name: str) -> bool:
    return any(source.path == file and name in source.defined for source in _sources())


def _is_qualified(owner: str, name: str) -> bool:
    """Return whether the module, class or table has the name; unknown owners count as having it."""
    named = _owners().get(owner)
    return not named or any(name in source.defined for source in named)


def _is_known(span: str, where: str) -> bool:
    """Return whether a span in backticks is no name, or the name of something that exists."""
    if found := _MODULE.fullmatch(span):
        return _is_module(found[1])
    if _FILE.fullmatch(span) and not span.startswith("/"):
        return _is_there(span, where)
    if found := _QUALIFIED.fullmatch(span):
        return span in _words() or _is_qualified(found[1], found[2])
    if found := _IDENTIFIER.fullmatch(span):
        # Fields of log lines about audit events have this prefix.
        names = {found[1], found[1].removeprefix("audit_")}
        return not names.isdisjoint(_words() | FOREIGN_NAMES)
    return True


def _dead_pointers(text: str, where: str) -> Iterator[str]:
    spans = (each for each in _SPAN.findall(text) if not _is_known(each, where))
    paths = (each for each in _ROOTED_PATH.findall(text) if not _is_there(each, where))
    records = (f"record {each}" for each in _RECORD.findall(text) if int(each) not in _records())
    return (f"{where}: {dead}" for dead in (*spans, *paths, *records))


def test_names_in_documents_exist() -> None:
    dead = {dead for where, text in _documents() for dead in _dead_pointers(text, where)}
    assert sorted(dead) == []


def test_names_in_docstrings_and_comments_exist() -> None:
    dead = {
        dead for source in _sources() for dead in _dead_pointers(source.prose, path_of(source.path))
    }
    assert sorted(dead) == []
