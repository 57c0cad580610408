"""Checks a text submitted by a consumer, and reports usages that break.

CI files are read with the line numbers of their values by means of PyYAML's events. Events are
emitted in parsing order. An alias is a single event and is not expanded. So the amount of work does
not exceed the size of the file.
"""

import re
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, NamedTuple

import yaml

from domain.releases.changes import Change, Names, Where
from domain.releases.checker.access_logs import check_access_log, looks_like_log
from domain.releases.checker.findings import (
    Found,
    Report,
    UnreadableContentError,
    deadline,
    numbered_lines,
    paced,
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
from domain.releases.checker.sources import check_python, check_source, check_terraform
from domain.releases.checker.tokens import Comments
from domain.releases.schedule import BY_ID, SCHEDULE
from domain.releases.version import Release

#: Maximum nesting depth of keys and lists. The scanner's time is quadratic in the depth.
_DEPTH = 100
#: YAML loader, which is implemented in C if PyYAML was built with libyaml, as its wheels are.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OFF = frozenset({"false", "no", "off", "", "null", "~"})
_QUOTED = frozenset({"'", '"'})
_NOT_VALID = "The content is not valid YAML"


def _keywords() -> dict[tuple[str, ...], Change]:
    return {
        tuple(name.split(":")): change
        for change in SCHEDULE
        for match in change.matches
        if isinstance(match, Names) and match.where is Where.CI_KEYWORD
        for name in match.names
    }


_KEYWORDS = _keywords()


class _Place:
    """The position of the parser in the document: the keys from the top."""

    def __init__(self) -> None:
        self._stack: list[str | None] = []
        self._is_mapping: list[bool] = []
        self._expects_key: list[bool] = []

    @property
    def path(self) -> tuple[str, ...]:
        """Return the keys on the path to this position."""
        return tuple(each for each in self._stack if each is not None)

    def open(self, *, is_mapping: bool, line: int) -> None:
        """Enter a mapping or list.

        Raise UnreadableContentError if it is nested too deeply.
        """
        if len(self._stack) >= _DEPTH:
            raise UnreadableContentError("The YAML is nested too deeply", line=line)
        self._stack.append(None)
        self._is_mapping.append(is_mapping)
        self._expects_key.append(is_mapping)

    def close(self) -> None:
        """Leave the mapping or list."""
        for each in (self._stack, self._is_mapping, self._expects_key):
            each.pop()
        self.value_ends()

    def takes_key(self, name: str) -> bool:
        """Use a scalar as a key if one is expected; return whether it was."""
        if not self._expects_key or not self._expects_key[-1]:
            return False
        self._stack[-1] = name
        self._expects_key[-1] = False
        return True

    def value_ends(self) -> None:
        """Expect a key after the value."""
        if self._expects_key and self._is_mapping[-1]:
            self._expects_key[-1] = not self._expects_key[-1]


def check_ci_file(text: str) -> Iterator[Found]:
    """Yield the changes that affect a CI file.

    Raise UnreadableContentError if it is not valid YAML.
    """
    place = _Place()
    try:
        for event in paced(yaml.parse(text, Loader=_LOADER)):
            yield from _of_event(event, place, text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        raise UnreadableContentError(_NOT_VALID, line=line) from None


def _of_event(event: yaml.Event, place: _Place, text: str) -> Iterator[Found]:
    line = event.start_mark.line + 1 if event.start_mark else 1
    if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
        place.open(is_mapping=isinstance(event, yaml.MappingStartEvent), line=line)
    elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
        place.close()
    elif isinstance(event, yaml.AliasEvent):
        place.value_ends()
    elif isinstance(event, yaml.ScalarEvent):
        yield from _of_scalar(event, place, text, line)


def _of_scalar(event: Any, place: _Place, text: str, line: int) -> Iterator[Found]:
    if place.takes_key(event.value):
        yield from check_shell(event.value, line)
        return
    yield from _of_keyword(event.value, place.path, line)
    # The value has its original lines only in the text.
    raw = text[event.start_mark.index : event.end_mark.index]
    yield from check_shell(event.value if event.style in _QUOTED else _unmarked(raw), line)
    place.value_ends()


def _unmarked(raw: str) -> str:
    """Return a block scalar without its `|` or `>`."""
    return raw if raw[:1] not in {"|", ">"} else " " + raw[1:].lstrip("+-0123456789")


def _of_keyword(value: str, path: tuple[str, ...], line: int) -> Iterator[Found]:
    if path[-1:] == ("registration_token",) and _is_runner(path):
        yield Found(BY_ID["runner-registration"], line, "gitlab_runner: registration_token")
    for keyword, change in _KEYWORDS.items():
        if path[-len(keyword) :] == keyword and value.strip().lower() not in _OFF:
            yield Found(change, line, f"The keyword {':'.join(keyword)}")


def _is_runner(path: tuple[str, ...]) -> bool:
    """Return whether a value belongs to Ansible's module for runners."""
    return len(path) > 1 and path[-2].rpartition(".")[2] == "gitlab_runner"


_ADDRESS = re.compile(r"(?:https?://[^\s/\"'<>`]{1,300})?/(?:api/v4/|-/jwks)[^\s\"'<>`)]*")
#: Maximum number of characters that are read of a line.
_LONGEST = 64 * 1024


def check_plain_text(text: str) -> Iterator[Found]:
    """Yield the changes that affect addresses, read as GET requests, and names."""
    for number, line in numbered_lines(text):
        for found in _ADDRESS.finditer(line[:_LONGEST]):
            url = found[0].rstrip(".,;:")
            yield from judge(Request(method="GET", url=url, line=number, has_body=False))
        yield from names_in_text(line[:_LONGEST], number, is_client=False)


#: Release of the latest announced changes.
NEWEST = max(change.removal for change in SCHEDULE)
#: Number of lines from which the kind of a text is detected.
_FIRST_LINES = 20
_LONGEST_LINE = 4_000
_LONGEST_NAME = 1_000

Reader = Callable[[str], Iterator[Found]]


class _Kind(NamedTuple):
    """A kind of text, with its display name."""

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
    "tf": _Kind("Source", check_terraform),
    # These files are prose, regardless of their lines.
    **dict.fromkeys(("md", "markdown", "mdx", "rst", "adoc", "asciidoc", "html"), _PLAIN),
    **dict.fromkeys(("css", "scss", "svg", "lock", "po", "tex"), _PLAIN),
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
#: Pattern of JSON, as opposed to `[[ -f …` in shells.
_LOOKS_LIKE_JSON = re.compile(r'\s*(?!\[\[ )[\[{]\s*(?:["\[{\]}]|-?[0-9]|(?:true|false|null)\b|\Z)')
_LOOKS_LIKE_HAR = re.compile(r'\s*\{\s*"log"\s*:')


def check(name: str, content: bytes, release: Release = NEWEST) -> Report:
    """Return the report of `check_text` for the bytes of a file."""
    return check_text(name, decoded(content), release)


def check_text(name: str, text: str, release: Release = NEWEST, *, seconds: float = inf) -> Report:
    """Return the usages in a text that break in a release or before it.

    Raise UnreadableContentError if the content does not match the name. Raise TakesTooLongError if
    reading takes more than `seconds` of the thread's processor time.
    """
    # Characters that cannot be encoded, such as lone surrogates, are replaced.
    text = text.encode("utf-8", errors="replace").decode().removeprefix("\ufeff")
    with deadline(seconds):
        kind = _recognise(name[-_LONGEST_NAME:], text)
        # An empty file breaks nothing, regardless of its name.
        found = kind.read(text) if text.strip() else iter(())
        return report(kind.label, found, release)


def decoded(content: bytes) -> str:
    """Return the text of UTF-8, or of UTF-16 with a byte order mark; invalid bytes are replaced.

    Raise UnreadableContentError for binary content.
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
    """Return the kind of a text that can be detected from its first lines, or None."""
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
        (_LOOKS_LIKE_CI.search(beginning) and _is_yaml(text), _CI),
        (_LOOKS_LIKE_CODE.search(beginning), _HASHED),
    )
    return next((kind for matches, kind in looks if matches), _PLAIN)


def _is_yaml(text: str) -> bool:
    """Return whether a text is valid YAML: a line of prose may end in a colon as well."""
    try:
        for _ in paced(yaml.parse(text, Loader=_LOADER)):
            pass
    except yaml.YAMLError:
        return False
    return True


def _is_document(text: str) -> bool:
    """Return whether a text in braces is GraphQL, as opposed to JSON."""
    return re.match(r"\s*\{\s*[A-Za-z_]", text) is not None
