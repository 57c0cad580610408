"""Reads a text that a consumer hands in, and reports what breaks."""

import re
from collections.abc import Callable, Iterator
from math import inf
from typing import NamedTuple

from domain.releases.checker.access_logs import check_access_log, looks_like_log
from domain.releases.checker.ci_files import check_ci_file
from domain.releases.checker.findings import (
    Found,
    Report,
    UnreadableContentError,
    deadline,
    numbered_lines,
    report,
)
from domain.releases.checker.graphql import check_graphql
from domain.releases.checker.json_documents import check_har, check_json
from domain.releases.checker.names import names_in_text
from domain.releases.checker.request_lists import (
    check_requests,
    looks_like_command,
    looks_like_request,
)
from domain.releases.checker.requests import Request, judge
from domain.releases.checker.shell import check_shell
from domain.releases.checker.sources import check_python, check_source
from domain.releases.checker.tokens import Comments
from domain.releases.schedule import SCHEDULE
from domain.releases.version import Release

_ADDRESS = re.compile(r"(?:https?://[^\s/\"'<>`]{1,300})?/(?:api/v4/|-/jwks)[^\s\"'<>`)]*")
#: Lines are read up to so many characters.
_LONGEST = 64 * 1024


def check_plain_text(text: str) -> Iterator[Found]:
    """Yield what changes for addresses, taken as those of GET requests, and for names."""
    for number, line in numbered_lines(text):
        for found in _ADDRESS.finditer(line[:_LONGEST]):
            url = found[0].rstrip(".,;:")
            yield from judge(Request(method="GET", url=url, line=number, has_body=False))
        yield from names_in_text(line[:_LONGEST], number, is_client=False)


#: The release of the last changes that are announced.
NEWEST = max(change.removal for change in SCHEDULE)
#: Lines from which a text is recognised.
_FIRST_LINES = 20
_LONGEST_LINE = 4_000
_LONGEST_NAME = 1_000

Reader = Callable[[str], Iterator[Found]]


class _Kind(NamedTuple):
    """A kind of text, with its name for people."""

    label: str
    read: Reader


def _source(label: str, comments: Comments) -> _Kind:
    return _Kind(label, lambda text: check_source(text, comments))


_HAR = _Kind("HAR file", check_har)
_LOG = _Kind("Access log", check_access_log)
_REQUESTS = _Kind("List of requests", check_requests)
_GRAPHQL = _Kind("GraphQL document", check_graphql)
_CI = _Kind("CI file", check_ci_file)
_SHELL = _Kind("Shell script", check_shell)
_PYTHON = _Kind("Python source", check_python)
_PART_OF_PYTHON = _source("Python source", Comments.HASH)
_JAVASCRIPT = _source("JavaScript source", Comments.SLASHES)
_HASHED = _source("Source", Comments.HASH)
_SLASHED = _source("Source", Comments.SLASHES)
_PLAIN = _Kind("Text", check_plain_text)


_JSON = _Kind("JSON", check_json)
_BY_ENDING = {
    "har": _HAR,
    "graphql": _GRAPHQL,
    "gql": _GRAPHQL,
    "yml": _CI,
    "yaml": _CI,
    "http": _REQUESTS,
    "rest": _REQUESTS,
    "py": _PYTHON,
    "pyi": _PYTHON,
    **dict.fromkeys(("js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "vue"), _JAVASCRIPT),
    **dict.fromkeys(("sh", "bash", "zsh", "ksh", "mk", "dockerfile", "env"), _SHELL),
    **dict.fromkeys(("rb", "pl", "pm", "r", "ex", "exs", "toml", "cfg", "conf"), _HASHED),
    **dict.fromkeys(("go", "java", "kt", "cs", "rs", "scala", "swift", "dart", "groovy"), _SLASHED),
    **dict.fromkeys(("c", "cc", "cpp", "h", "m", "gradle", "jenkinsfile"), _SLASHED),
    "php": _source("Source", Comments.BOTH),
    "tf": _source("Source", Comments.BOTH),
    "ps1": _HASHED,
    "json": _JSON,
}
_BY_NAME = {
    "makefile": _SHELL,
    "dockerfile": _SHELL,
    "jenkinsfile": _SLASHED,
    "gemfile": _HASHED,
    "access.log": _LOG,
    "access_log": _LOG,
}
ENDINGS = frozenset(_BY_ENDING)
NAMES = frozenset(_BY_NAME)
_LOOKS_LIKE_GRAPHQL = re.compile(r"\s*(?:query|mutation|subscription|fragment)\b[^{;=]{0,500}\{")
_LOOKS_LIKE_PYTHON = re.compile(
    r"^(?:import \w|from [\w.]+ import |def \w+\(|#!.*python)", re.MULTILINE
)
_LOOKS_LIKE_JAVASCRIPT = re.compile(
    r"^(?:import .* from |(?:const|let|var) |export |function |'use strict'|#!.*node)", re.MULTILINE
)
_LOOKS_LIKE_SHELL = re.compile(r"\A#!.*sh\b|^set -|\bcurl ", re.MULTILINE)
_LOOKS_LIKE_CI = re.compile(
    r"^(?:stages|include|variables|image|default|workflow|[\w.-]+):\s*$", re.MULTILINE
)
_LOOKS_LIKE_CODE = re.compile(r"\w\.\w+\(|\w\]? = \S|[;{]$", re.MULTILINE)
#: Not `[[ -f …`, as in shells.
_LOOKS_LIKE_JSON = re.compile(r'\s*(?!\[\[ )[\[{]\s*(?:["\[{\]}]|-?[0-9]|(?:true|false|null)\b|\Z)')
_LOOKS_LIKE_HAR = re.compile(r'\s*\{\s*"log"\s*:')


def check(name: str, content: bytes, release: Release = NEWEST) -> Report:
    """As `check_text`, for the bytes of a file."""
    return check_text(name, decoded(content), release)


def check_text(name: str, text: str, release: Release = NEWEST, *, seconds: float = inf) -> Report:
    """Return what of a text breaks in a release or before it.

    Raises UnreadableContentError for what is not what its name says, and TakesTooLongError if
    reading it takes more than so many seconds of the thread's processor time.
    """
    # What no encoding has, such as half a pair of UTF-16, is replaced.
    text = text.encode("utf-8", errors="replace").decode().removeprefix("\ufeff")
    with deadline(seconds):
        kind = _recognise(name[-_LONGEST_NAME:], text)
        return report(kind.label, kind.read(text), release)


def decoded(content: bytes) -> str:
    """Return the text of UTF-8, or of UTF-16 with a mark; other bytes are replaced.

    Raises UnreadableContentError for what is no text.
    """
    if content[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        return content.decode("utf-16", errors="replace")
    if b"\x00" in content:
        raise UnreadableContentError("The content is binary, not text")
    return content.decode("utf-8", errors="replace")


def _recognise(name: str, text: str) -> _Kind:
    last = re.split(r"[/\\]", name)[-1].lower()
    found = _BY_NAME.get(last) or _BY_ENDING.get(last.rpartition(".")[2])
    if found is _JSON:
        return _json_kind(text)
    if last.endswith((".log", ".jsonl", ".ndjson")) or last.startswith("access"):
        return found or _by_lines(text) or _LOG
    return found or _by_lines(text) or _by_look(text)


def _json_kind(text: str) -> _Kind:
    if _LOOKS_LIKE_HAR.match(text):
        return _HAR
    return _LOG if looks_like_log(_first_lines(text)[0]) else _JSON


def _first_lines(text: str) -> list[str]:
    lines: list[str] = []
    for number, line in numbered_lines(text[: _FIRST_LINES * _LONGEST_LINE]):
        if number > _FIRST_LINES:
            break
        lines.append(line)
    return lines or [""]


def _by_lines(text: str) -> _Kind | None:
    """Return the kind of text whose first lines tell what it is."""
    lines = [line for line in _first_lines(text) if line.strip()]
    if any(looks_like_log(line) for line in lines):
        return _LOG
    if any(looks_like_request(line) for line in lines):
        return _REQUESTS
    is_command = bool(lines) and looks_like_command(lines[0])
    return _SHELL if is_command else None


def _by_look(text: str) -> _Kind:
    beginning = text[: _FIRST_LINES * _LONGEST_LINE]
    if _LOOKS_LIKE_HAR.match(beginning):
        return _HAR
    if _LOOKS_LIKE_JSON.match(beginning):
        return _JSON
    if _is_document(beginning):
        return _GRAPHQL
    looks = (
        (_LOOKS_LIKE_GRAPHQL.match(beginning), _GRAPHQL),
        (_LOOKS_LIKE_PYTHON.search(beginning), _PART_OF_PYTHON),
        (_LOOKS_LIKE_JAVASCRIPT.search(beginning), _JAVASCRIPT),
        (_LOOKS_LIKE_SHELL.search(beginning), _SHELL),
        (_LOOKS_LIKE_CI.search(beginning), _CI),
        (_LOOKS_LIKE_CODE.search(beginning), _HASHED),
    )
    return next((kind for matches, kind in looks if matches), _PLAIN)


def _is_document(text: str) -> bool:
    """Return whether a text in braces is GraphQL and no JSON."""
    return re.match(r"\s*\{\s*[A-Za-z_]", text) is not None
