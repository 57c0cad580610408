"""Checks text submitted by a consumer, and reports breaking usages.

CI files are read through PyYAML's events, which contain line numbers. Events are emitted in parsing
order, and an alias is a single event that is not expanded. The amount of work is therefore limited
by the size of the file.
"""

import re
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, NamedTuple

import yaml

from domain.releases.changes import ApiNameKind, Change, NamePattern
from domain.releases.checker.access_logs import check_access_log, is_access_log_line
from domain.releases.checker.distinctive_names import find_names_in_text
from domain.releases.checker.findings import (
    CheckReport,
    DetectedChange,
    UnreadableContentError,
    build_check_report,
    iterate_within_limit,
    limit_processor_time,
    read_numbered_lines,
)
from domain.releases.checker.graphql import check_graphql
from domain.releases.checker.json_documents import check_har, check_json
from domain.releases.checker.request_lists import (
    check_request_list,
    is_command_line,
    is_request_line,
)
from domain.releases.checker.requests import Request, find_request_changes
from domain.releases.checker.shell_commands import check_shell
from domain.releases.checker.source_code import check_python, check_source, check_terraform
from domain.releases.checker.tokens import CommentSyntax
from domain.releases.schedule import CHANGES_BY_ID, SCHEDULE
from domain.releases.version import Release

#: Maximum nesting depth of mappings and lists. The time that the scanner needs is quadratic in the
#: depth.
_MAX_YAML_DEPTH = 100
#: YAML loader, which is implemented in C if PyYAML was built with libyaml, as its wheels are.
_YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FALSE_VALUES = frozenset({"false", "no", "off", "", "null", "~"})
_QUOTE_STYLES = frozenset({"'", '"'})
_INVALID_YAML = "The content is not valid YAML"


def _map_keywords_to_changes() -> dict[tuple[str, ...], Change]:
    return {
        tuple(name.split(":")): change
        for change in SCHEDULE
        for match in change.matches
        if isinstance(match, NamePattern) and match.where is ApiNameKind.CI_KEYWORD
        for name in match.names
    }


_CI_KEYWORDS = _map_keywords_to_changes()


class _YamlPosition:
    """The position of the parser in the document, as the keys on the path from the top."""

    def __init__(self) -> None:
        self._stack: list[str | None] = []
        self._is_mapping: list[bool] = []
        self._expects_key: list[bool] = []

    @property
    def path(self) -> tuple[str, ...]:
        """The keys on the path to the position."""
        return tuple(each for each in self._stack if each is not None)

    def enter_container(self, *, is_mapping: bool, line: int) -> None:
        """Enter a mapping or list.

        Raise UnreadableContentError if the nesting is too deep.
        """
        if len(self._stack) >= _MAX_YAML_DEPTH:
            raise UnreadableContentError("The YAML is nested too deeply", line=line)
        self._stack.append(None)
        self._is_mapping.append(is_mapping)
        self._expects_key.append(is_mapping)

    def leave_container(self) -> None:
        """Leave the current mapping or list."""
        for each in (self._stack, self._is_mapping, self._expects_key):
            each.pop()
        self.expect_next_key()

    def use_scalar_as_key(self, name: str) -> bool:
        """Use a scalar as a key if a key is expected.

        Return False if no key is expected.
        """
        if not self._expects_key or not self._expects_key[-1]:
            return False
        self._stack[-1] = name
        self._expects_key[-1] = False
        return True

    def expect_next_key(self) -> None:
        """Expect a value after a key, or a key after a value, if the container is a mapping."""
        if self._expects_key and self._is_mapping[-1]:
            self._expects_key[-1] = not self._expects_key[-1]


def check_ci_file(text: str) -> Iterator[DetectedChange]:
    """Yield the changes that affect a CI file.

    Raise UnreadableContentError if the file is not valid YAML.
    """
    place = _YamlPosition()
    try:
        for event in iterate_within_limit(yaml.parse(text, Loader=_YAML_LOADER)):
            yield from _check_yaml_event(event, place, text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        raise UnreadableContentError(_INVALID_YAML, line=line) from None


def _check_yaml_event(
    event: yaml.Event, yaml_position: _YamlPosition, text: str
) -> Iterator[DetectedChange]:
    line = event.start_mark.line + 1 if event.start_mark else 1
    if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
        yaml_position.enter_container(
            is_mapping=isinstance(event, yaml.MappingStartEvent), line=line
        )
    elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
        yaml_position.leave_container()
    elif isinstance(event, yaml.AliasEvent):
        yaml_position.expect_next_key()
    elif isinstance(event, yaml.ScalarEvent):
        yield from _check_yaml_scalar(event, yaml_position, text, line)


def _check_yaml_scalar(
    event: Any, yaml_position: _YamlPosition, text: str, line: int
) -> Iterator[DetectedChange]:
    if yaml_position.use_scalar_as_key(event.value):
        yield from check_shell(event.value, line)
        return
    yield from _check_keyword(event.value, yaml_position.path, line)
    # The event's value may have different line breaks from the text, so the text is checked.
    raw = text[event.start_mark.index : event.end_mark.index]
    yield from check_shell(
        event.value if event.style in _QUOTE_STYLES else _strip_block_marker(raw), line
    )
    yaml_position.expect_next_key()


def _strip_block_marker(raw: str) -> str:
    """Return a block scalar without its `|` or `>`."""
    return raw if raw[:1] not in {"|", ">"} else " " + raw[1:].lstrip("+-0123456789")


def _check_keyword(value: str, path: tuple[str, ...], line: int) -> Iterator[DetectedChange]:
    if path[-1:] == ("registration_token",) and _is_runner_module(path):
        yield DetectedChange(
            CHANGES_BY_ID["runner-registration"], line, "gitlab_runner: registration_token"
        )
    for keyword, change in _CI_KEYWORDS.items():
        if path[-len(keyword) :] == keyword and value.strip().lower() not in _FALSE_VALUES:
            yield DetectedChange(change, line, f"The keyword {':'.join(keyword)}")


def _is_runner_module(path: tuple[str, ...]) -> bool:
    """Return whether the value at a path belongs to Ansible's `gitlab_runner` module."""
    return len(path) > 1 and path[-2].rpartition(".")[2] == "gitlab_runner"


_ADDRESS_PATTERN = re.compile(r"(?:https?://[^\s/\"'<>`]{1,300})?/(?:api/v4/|-/jwks)[^\s\"'<>`)]*")
#: Maximum number of characters that are read from a line.
_MAX_READ_LINE_LENGTH = 64 * 1024


def check_plain_text(text: str) -> Iterator[DetectedChange]:
    """Yield the changes that affect the names and URLs in plain text.

    URLs count as GET requests.
    """
    for number, line in read_numbered_lines(text):
        for found in _ADDRESS_PATTERN.finditer(line[:_MAX_READ_LINE_LENGTH]):
            url = found[0].rstrip(".,;:")
            yield from find_request_changes(
                Request(method="GET", url=url, line=number, has_body=False)
            )
        yield from find_names_in_text(line[:_MAX_READ_LINE_LENGTH], number, is_client=False)


#: Latest release with scheduled changes.
NEWEST_RELEASE = max(change.effective_release for change in SCHEDULE)
#: Number of lines that are read to detect the kind of a text.
_DETECTION_LINES = 20
_MAX_DETECTION_LINE_LENGTH = 4_000
_MAX_NAME_LENGTH = 1_000

ReadFunction = Callable[[str], Iterator[DetectedChange]]


class _TextKind(NamedTuple):
    """A kind of text, with its display name and the function that checks it."""

    label: str
    read: ReadFunction


def _build_source_kind(label: str, comments: CommentSyntax) -> _TextKind:
    return _TextKind(label, lambda text: check_source(text, comments))


_HAR_KIND = _TextKind("HAR file", check_har)
_LOG_KIND = _TextKind("Access log", check_access_log)
_REQUEST_LIST_KIND = _TextKind("List of requests", check_request_list)
_GRAPHQL_KIND = _TextKind("GraphQL document", check_graphql)
_CI_KIND = _TextKind("CI file", check_ci_file)
_SHELL_KIND = _TextKind("Shell script", check_shell)
_PYTHON_KIND = _TextKind("Python source", check_python)
_PYTHON_FRAGMENT_KIND = _build_source_kind("Python source", CommentSyntax.HASH)
_JAVASCRIPT_KIND = _build_source_kind("JavaScript source", CommentSyntax.SLASHES)
_HASH_COMMENT_KIND = _build_source_kind("Source", CommentSyntax.HASH)
_SLASH_COMMENT_KIND = _build_source_kind("Source", CommentSyntax.SLASHES)
_PLAIN_TEXT_KIND = _TextKind("Text", check_plain_text)


_JSON_KIND = _TextKind("JSON", check_json)
_KINDS_BY_EXTENSION = {
    "har": _HAR_KIND,
    "graphql": _GRAPHQL_KIND,
    "gql": _GRAPHQL_KIND,
    "yml": _CI_KIND,
    "yaml": _CI_KIND,
    "http": _REQUEST_LIST_KIND,
    "rest": _REQUEST_LIST_KIND,
    "py": _PYTHON_KIND,
    "pyi": _PYTHON_KIND,
    **dict.fromkeys(
        ("js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "vue"), _JAVASCRIPT_KIND
    ),
    **dict.fromkeys(("sh", "bash", "zsh", "ksh", "mk", "dockerfile", "env"), _SHELL_KIND),
    **dict.fromkeys(
        ("rb", "pl", "pm", "r", "ex", "exs", "toml", "cfg", "conf"), _HASH_COMMENT_KIND
    ),
    **dict.fromkeys(
        ("go", "java", "kt", "cs", "rs", "scala", "swift", "dart", "groovy"), _SLASH_COMMENT_KIND
    ),
    **dict.fromkeys(("c", "cc", "cpp", "h", "m", "gradle", "jenkinsfile"), _SLASH_COMMENT_KIND),
    "php": _build_source_kind("Source", CommentSyntax.BOTH),
    "tf": _TextKind("Source", check_terraform),
    # Files of these types count as prose, even if some of their lines look like code.
    **dict.fromkeys(("md", "markdown", "mdx", "rst", "adoc", "asciidoc", "html"), _PLAIN_TEXT_KIND),
    **dict.fromkeys(("css", "scss", "svg", "lock", "po", "tex"), _PLAIN_TEXT_KIND),
    "ps1": _HASH_COMMENT_KIND,
    "json": _JSON_KIND,
}
_KINDS_BY_FILE_NAME = {
    "makefile": _SHELL_KIND,
    "dockerfile": _SHELL_KIND,
    "jenkinsfile": _SLASH_COMMENT_KIND,
    "gemfile": _HASH_COMMENT_KIND,
    "access.log": _LOG_KIND,
    "access_log": _LOG_KIND,
}
KNOWN_EXTENSIONS = frozenset(_KINDS_BY_EXTENSION)
KNOWN_FILE_NAMES = frozenset(_KINDS_BY_FILE_NAME)
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
#: Pattern for the start of JSON, as opposed to `[[ -f …` in shell scripts.
_LOOKS_LIKE_JSON = re.compile(r'\s*(?!\[\[ )[\[{]\s*(?:["\[{\]}]|-?[0-9]|(?:true|false|null)\b|\Z)')
_LOOKS_LIKE_HAR = re.compile(r'\s*\{\s*"log"\s*:')


def check_file(name: str, content: bytes, release: Release = NEWEST_RELEASE) -> CheckReport:
    """Return the report of `check_text` for the content of a file."""
    return check_text(name, decode_file(content), release)


def check_text(
    name: str, text: str, release: Release = NEWEST_RELEASE, *, seconds: float = inf
) -> CheckReport:
    """Report the usages in the text that the given release or an earlier release breaks.

    Raise UnreadableContentError if the content does not match the name. Raise CheckTimeoutError if
    reading takes more than `seconds` of the thread's processor time.
    """
    # Characters that cannot be encoded, such as lone surrogates, are replaced.
    text = text.encode("utf-8", errors="replace").decode().removeprefix("\ufeff")
    with limit_processor_time(seconds):
        kind = _recognize_kind(name[-_MAX_NAME_LENGTH:], text)
        # An empty file breaks nothing, regardless of its name.
        found = kind.read(text) if text.strip() else iter(())
        return build_check_report(kind.label, found, release)


def decode_file(content: bytes) -> str:
    """Decode a file in UTF-8, or in UTF-16 with a byte order mark.

    Invalid bytes are replaced. Raise UnreadableContentError for binary content.
    """
    if content[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        return content.decode("utf-16", errors="replace")
    if b"\x00" in content:
        raise UnreadableContentError("The content is binary, not text")
    return content.decode("utf-8", errors="replace")


def _recognize_kind(name: str, text: str) -> _TextKind:
    last = re.split(r"[/\\]", name)[-1].lower()
    found = _KINDS_BY_FILE_NAME.get(last) or _KINDS_BY_EXTENSION.get(last.rpartition(".")[2])
    if found is _JSON_KIND:
        return _recognize_json(text)
    if last.endswith((".log", ".jsonl", ".ndjson")) or last.startswith("access"):
        return found or _recognize_by_lines(text) or _LOG_KIND
    return found or _recognize_by_lines(text) or _recognize_by_content(text)


def _recognize_json(text: str) -> _TextKind:
    if _LOOKS_LIKE_HAR.match(text):
        return _HAR_KIND
    return _LOG_KIND if is_access_log_line(_read_first_lines(text)[0]) else _JSON_KIND


def _read_first_lines(text: str) -> list[str]:
    lines: list[str] = []
    for number, line in read_numbered_lines(text[: _DETECTION_LINES * _MAX_DETECTION_LINE_LENGTH]):
        if number > _DETECTION_LINES:
            break
        lines.append(line)
    return lines or [""]


def _recognize_by_lines(text: str) -> _TextKind | None:
    """Return the kind of text that the first lines indicate, or None."""
    lines = [line for line in _read_first_lines(text) if line.strip()]
    if any(is_access_log_line(line) for line in lines):
        return _LOG_KIND
    if any(is_request_line(line) for line in lines):
        return _REQUEST_LIST_KIND
    is_command = bool(lines) and is_command_line(lines[0])
    return _SHELL_KIND if is_command else None


def _recognize_by_content(text: str) -> _TextKind:
    beginning = text[: _DETECTION_LINES * _MAX_DETECTION_LINE_LENGTH]
    if _LOOKS_LIKE_HAR.match(beginning):
        return _HAR_KIND
    if _LOOKS_LIKE_JSON.match(beginning):
        return _JSON_KIND
    if _is_graphql_document(beginning):
        return _GRAPHQL_KIND
    looks = (
        (_LOOKS_LIKE_GRAPHQL.match(beginning), _GRAPHQL_KIND),
        (_LOOKS_LIKE_PYTHON.search(beginning), _PYTHON_FRAGMENT_KIND),
        (_LOOKS_LIKE_JAVASCRIPT.search(beginning), _JAVASCRIPT_KIND),
        (_LOOKS_LIKE_SHELL.search(beginning), _SHELL_KIND),
        (_LOOKS_LIKE_CI.search(beginning) and _is_yaml(text), _CI_KIND),
        (_LOOKS_LIKE_CODE.search(beginning), _HASH_COMMENT_KIND),
    )
    return next((kind for matches, kind in looks if matches), _PLAIN_TEXT_KIND)


def _is_yaml(text: str) -> bool:
    """Return whether text is valid YAML, and not prose with a colon at the end of a line."""
    try:
        for _ in iterate_within_limit(yaml.parse(text, Loader=_YAML_LOADER)):
            pass
    except yaml.YAMLError:
        return False
    return True


def _is_graphql_document(text: str) -> bool:
    """Return whether text that starts with a brace is GraphQL, as opposed to JSON."""
    return re.match(r"\s*\{\s*[A-Za-z_]", text) is not None
