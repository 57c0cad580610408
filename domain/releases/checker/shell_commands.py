"""Reads shell commands: requests sent with curl, wget, HTTPie and glab, and names of variables.

`gitlab-runner register` with a registration token sends POST /runners. If the output is piped to
jq, as in `curl … | jq '.assets.links[].external'`, the fields in the filter are also read.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import pairwise
from typing import NamedTuple

from domain.releases.checker.distinctive_names import find_names_in_text
from domain.releases.checker.findings import DetectedChange, iterate_within_limit
from domain.releases.checker.graphql import check_graphql_request
from domain.releases.checker.requests import (
    HTTP_METHODS,
    Request,
    find_api_path,
    find_path_matches,
    find_request_changes,
)
from domain.releases.schedule import CHANGES_BY_ID

#: Maximum number of URLs in one command. The same body is sent to each URL.
_MAX_URLS = 20
#: Length of a one-letter option. The value of such an option may follow without a space.
_SHORT_OPTION_LENGTH = len("-X")


class ShellWord(NamedTuple):
    """A word of a command, with its quotes removed, and its line number."""

    text: str
    line: int


class _OptionEffect(Enum):
    """The effect of a command-line option on the request."""

    METHOD = auto()
    DATA = auto()
    HEADER = auto()
    URL = auto()
    #: Option whose value is irrelevant for the request.
    NOTHING = auto()
    #: Option without a value that moves the data to the query.
    QUERY = auto()
    #: Option without a value that sets the method to HEAD.
    HEAD = auto()


OptionMeanings = Mapping[str, _OptionEffect]


def _build_options(**names: str) -> OptionMeanings:
    """Return the effect of each option on the request.

    Each argument lists the options with the same effect, separated by spaces.
    """
    return {
        name: _OptionEffect[means] for means, listed in names.items() for name in listed.split()
    }


_CURL_OPTIONS = _build_options(
    METHOD="-X --request",
    DATA=(
        "-d --data --data-raw --data-binary --data-ascii --data-urlencode --json -F --form "
        "--form-string --url-query"
    ),
    HEADER="-H --header",
    URL="--url",
    NOTHING=(
        "-o --output -u --user -A --user-agent -b --cookie -c --cookie-jar -e --referer -w "
        "--write-out -m --max-time --connect-timeout --retry --cacert --cert --key -x --proxy -T "
        "--upload-file --resolve --tls-max -K --config -D --dump-header --retry-delay -E "
        "--retry-max-time --oauth2-bearer --max-redirs --capath --ciphers"
    ),
    QUERY="-G --get",
    HEAD="-I --head",
)
_WGET_OPTIONS = _build_options(
    METHOD="--method",
    DATA="--post-data --body-data",
    HEADER="--header",
    NOTHING="-O -o --output-document --output-file --user --password --timeout",
)
_GLAB_OPTIONS = _build_options(
    METHOD="-X --method",
    DATA="-f -F --field --raw-field",
    HEADER="-H --header",
    NOTHING="--input --hostname --output",
)


class _RequestArguments:
    """The URLs, method, headers and data that the arguments of a command specify."""

    def __init__(self) -> None:
        self.method = ""
        self.urls: list[ShellWord] = []
        self.data: list[str] = []
        self.headers: set[str] = set()
        self.is_query = False

    def set_option_value(self, option_meaning: _OptionEffect, word: ShellWord) -> None:
        """Set the part of the request that an option specifies."""
        if option_meaning is _OptionEffect.METHOD:
            self.method = word.text
        elif option_meaning is _OptionEffect.DATA:
            self.data.append(word.text)
        elif option_meaning is _OptionEffect.HEADER:
            self.headers.add(word.text.partition(":")[0].strip().lower())
        elif option_meaning is _OptionEffect.URL:
            self.urls.append(word)

    def set_flag(self, option_meaning: _OptionEffect) -> None:
        """Apply an option without a value, such as the option for a HEAD request."""
        if option_meaning is _OptionEffect.QUERY:
            self.is_query = True
        elif option_meaning is _OptionEffect.HEAD:
            self.method = "HEAD"

    def build_requests(self) -> Iterator[Request]:
        """Yield the requests that the command sends."""
        body = _join_body(self.data)
        in_query = self.is_query and bool(body)
        usual = "POST" if self.data and not self.is_query else "GET"
        for url in self.urls[:_MAX_URLS]:
            yield Request(
                method=(self.method or usual).upper(),
                url=_append_query(url.text, body) if in_query else url.text,
                line=url.line,
                body="" if in_query else body,
                # A value with @ is the name of a file, which is not available.
                has_body=not any(each.startswith("@") for each in self.data),
                headers=frozenset(self.headers),
            )


def _join_body(data: Sequence[str]) -> str:
    """Return the body of a request: JSON, or form fields joined with `&`."""
    return "&".join(each for each in data if not each.startswith("@"))


def _append_query(url: str, query: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{query}"


_FLAG_MEANINGS = frozenset({_OptionEffect.QUERY, _OptionEffect.HEAD})


def _parse_request_arguments(
    words: Sequence[ShellWord], options: OptionMeanings
) -> _RequestArguments:
    """Return the request arguments in the words that follow the name of a command."""
    given = _RequestArguments()
    rest = iter(words)
    for word in rest:
        if not word.text.startswith("-") or word.text == "-":
            given.urls.append(word)
            continue
        name, attached = _split_option(word, options)
        means = options.get(name)
        if means in _FLAG_MEANINGS:
            given.set_flag(means)
        elif means is not None:
            given.set_option_value(means, attached or next(rest, ShellWord("", word.line)))
    return given


def _split_option(word: ShellWord, options: OptionMeanings) -> tuple[str, ShellWord | None]:
    """Return the name of an option, and the value if it is in the same word."""
    text = word.text
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        return name, ShellWord(value, word.line) if equals else None
    if len(text) > _SHORT_OPTION_LENGTH and options.get(text[:_SHORT_OPTION_LENGTH]) not in {
        None,
        *_FLAG_MEANINGS,
    }:
        return text[:_SHORT_OPTION_LENGTH], ShellWord(
            text[_SHORT_OPTION_LENGTH:].removeprefix("="), word.line
        )
    # The word combines several options, such as -sSX. The last option may take a value, and an
    # option may change the method.
    letters = [f"-{letter}" for letter in text[1:]]
    known = [each for each in letters if each in options]
    return (known[-1] if known else text), None


def _parse_curl_command(words: Sequence[ShellWord]) -> Iterator[Request]:
    yield from _parse_request_arguments(words, _CURL_OPTIONS).build_requests()


def _parse_wget_command(words: Sequence[ShellWord]) -> Iterator[Request]:
    yield from _parse_request_arguments(words, _WGET_OPTIONS).build_requests()


def _parse_glab_command(words: Sequence[ShellWord]) -> Iterator[Request]:
    """Yield the request that `glab api <path>` sends.

    The path is relative to /api/v4.
    """
    if not words or words[0].text != "api":
        return
    given = _parse_request_arguments(words[1:], _GLAB_OPTIONS)
    given.urls = [_expand_glab_path(url) for url in given.urls[:1]]
    yield from given.build_requests()


def _expand_glab_path(url: ShellWord) -> ShellWord:
    path = "/api/graphql" if url.text == "graphql" else f"/api/v4/{url.text.lstrip('/')}"
    return ShellWord(path, url.line)


_PAIR_PATTERN = re.compile(r"([\w\[\]-]+)(==|:=|=|:)(.*)", re.DOTALL)


def _parse_httpie_command(words: Sequence[ShellWord]) -> Iterator[Request]:
    """Yield the request that `http POST <URL> name=value query==value Header:value` sends."""
    given = _RequestArguments()
    for word in words:
        if word.text in HTTP_METHODS:
            given.method = word.text
        elif not word.text.startswith("-"):
            _parse_httpie_word(word, given)
    yield from given.build_requests()


def _parse_httpie_word(word: ShellWord, request_arguments: _RequestArguments) -> None:
    pair = _PAIR_PATTERN.fullmatch(word.text)
    if not request_arguments.urls:
        request_arguments.urls.append(word)
    elif pair and pair[2] == "==":
        request_arguments.urls[0] = ShellWord(
            _append_query(request_arguments.urls[0].text, f"{pair[1]}={pair[3]}"),
            request_arguments.urls[0].line,
        )
    elif pair and pair[2] == ":":
        request_arguments.headers.add(pair[1].lower())
    elif pair:
        request_arguments.data.append(f"{pair[1]}={pair[3]}")


#: Functions that read the words after the name of a program, by program.
COMMAND_READERS: Mapping[str, Callable[[Sequence[ShellWord]], Iterator[Request]]] = {
    "curl": _parse_curl_command,
    "wget": _parse_wget_command,
    "http": _parse_httpie_command,
    "https": _parse_httpie_command,
    "glab": _parse_glab_command,
}


#: Pattern for the name of the program, or of its image after `docker run`.
_RUNNER_PROGRAM_PATTERN = re.compile(r"(?:.*/)?gitlab-(?:ci-multi-)?runner(?::[\w.-]+)?")
_REGISTRATION_OPTION = "--registration-token"
#: Pattern for alternative forms of the option, which have the same meaning only after `register`.
_SHORT_REGISTRATION_PATTERN = re.compile(r"-r(?:=.*)?|REGISTRATION_TOKEN=.*", re.DOTALL)
_RUNNER_REGISTRATION_CHANGE = CHANGES_BY_ID["runner-registration"]


def is_registration_option(text: str) -> bool:
    """Return whether a word is the option for a registration token, with or without a value."""
    return text == _REGISTRATION_OPTION or text.startswith(f"{_REGISTRATION_OPTION}=")


def find_runner_registration(words: Sequence[ShellWord]) -> Iterator[DetectedChange]:
    """Yield the change that affects a command that registers a runner."""
    registers = any(
        before.text
        and _RUNNER_PROGRAM_PATTERN.fullmatch(before.text[-200:])
        and word.text == "register"
        for before, word in pairwise(words)
    )
    for word in words:
        if is_registration_option(word.text) or (
            registers and _SHORT_REGISTRATION_PATTERN.fullmatch(word.text)
        ):
            yield DetectedChange(
                _RUNNER_REGISTRATION_CHANGE,
                word.line,
                f"gitlab-runner register with {_REGISTRATION_OPTION}",
            )
            return


_PART_PATTERN = re.compile(
    r"""(?P<space>[ \t\r]++|\\\r?\n)
    |(?P<comment>(?<![^\s;|&(])\#[^\n]*+)
    |(?P<end>\n|;|\|\|?|&&?|[()`])
    |\$?'(?P<single>[^']*+)(?:'|\Z)
    |\$?"(?P<double>(?:[^"\\]|\\.|(?!))*+)(?:"|\\?\Z)
    |(?P<plain>(?:\\[^\n]|[^\s'"|&;()`\\]|(?!))++|\\)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE_PATTERN = re.compile(r"\\(.)", re.DOTALL)
#: Words that may precede the name of a command.
_COMMAND_PREFIXES = frozenset(
    {"sudo", "time", "$", "-", "exec", "command", "then", "do", "if", "!", "else"}
)
_ASSIGNMENT_PATTERN = re.compile(r"[A-Za-z_]\w*=")


class ShellCommand(NamedTuple):
    """A command as a list of words."""

    words: Sequence[ShellWord]
    #: True if the command reads the output of the previous command.
    is_behind_pipe: bool


def check_shell(text: str, line: int = 1, *, is_client: bool = True) -> Iterator[DetectedChange]:
    """Yield the changes that affect the commands in a text starting at the given line."""
    for command in split_commands(text, line):
        for word in command.words:
            yield from find_names_in_text(word.text, word.line, is_client=is_client)
        joined = " ".join(
            word.text for word in command.words if word.text.startswith(("--tls", "1."))
        )
        yield from find_names_in_text(joined, command.words[0].line, only="tls-versions")
        yield from find_runner_registration(command.words)
    yield from _check_commands(split_commands(text, line))


def split_commands(text: str, line: int) -> Iterator[ShellCommand]:
    """Yield the commands in a text starting at the given line."""
    command, is_behind_pipe = _CommandBuilder(), False
    for found in iterate_within_limit(_PART_PATTERN.finditer(text)):
        kind = found.lastgroup or "plain"
        if kind in {"single", "double", "plain"}:
            command.add_part(
                _remove_shell_quotes(kind, found[0] if found[kind] is None else found[kind]), line
            )
        else:
            command.finish_word()
        if kind == "end" and command.words:
            yield ShellCommand(command.words, is_behind_pipe)
            command = _CommandBuilder()
        if kind == "end":
            # A command may continue in the next line after a pipe.
            is_behind_pipe = found[0] == "|" or (found[0] == "\n" and is_behind_pipe)
        line += found[0].count("\n")
    command.finish_word()
    if command.words:
        yield ShellCommand(command.words, is_behind_pipe)


class _CommandBuilder:
    """A builder that collects the words of a command while the text is read."""

    def __init__(self) -> None:
        self.words: list[ShellWord] = []
        self._parts: list[str] = []
        self._line = 1

    def add_part(self, part: str, line: int) -> None:
        """Append a part to the current word."""
        self._line = self._line if self._parts else line
        self._parts.append(part)

    def finish_word(self) -> None:
        """End the current word, if a word has been started."""
        if self._parts:
            self.words.append(ShellWord("".join(self._parts), self._line))
            self._parts = []


def _remove_shell_quotes(kind: str, text: str) -> str:
    if kind == "single" or "\\" not in text:
        return text
    if kind == "double":
        return re.sub(r'\\(["\\$`\n])', r"\1", text)
    return _ESCAPE_PATTERN.sub(r"\1", text)


def _check_commands(shell_commands: Iterator[ShellCommand]) -> Iterator[DetectedChange]:
    """Yield the changes that affect requests and the response fields that filters read."""
    sent: list[Request] = []
    for command in shell_commands:
        words = list(command.words)
        while words and (
            words[0].text in _COMMAND_PREFIXES or _ASSIGNMENT_PATTERN.match(words[0].text)
        ):
            del words[0]
        name = words[0].text.rpartition("/")[2] if words else ""
        reader = COMMAND_READERS.get(name)
        if command.is_behind_pipe and name in FILTER_PROGRAMS:
            yield from find_fields_read_by_filter(words[1:], sent)
        elif reader is not None:
            sent = list(reader(words[1:]))
            yield from _check_sent_requests(sent)
        else:
            sent = sent if command.is_behind_pipe else []
            # A word may contain a nested command, as in `"$(curl …)"`, or a command that the
            # program runs.
            yield from _check_nested_commands(command.words)


def _check_sent_requests(requests: Sequence[Request]) -> Iterator[DetectedChange]:
    for request in requests:
        yield from find_request_changes(request)
        if "/graphql" in request.url and request.body:
            for found in check_graphql_request(request.body):
                yield found._replace(line=request.line)


def _check_nested_commands(words: Sequence[ShellWord]) -> Iterator[DetectedChange]:
    for word in words:
        for name in ("curl ", "glab api "):
            at = word.text.find(name)
            if at >= 0:
                inner = word.text[at:].rstrip(")`")
                line = word.line + word.text.count("\n", 0, at)
                yield from _check_commands(
                    _iterate_request_and_filter_commands(split_commands(inner, line))
                )


def _iterate_request_and_filter_commands(
    shell_commands: Iterator[ShellCommand],
) -> Iterator[ShellCommand]:
    """Yield the commands that send requests or filter responses.

    Other commands in a quoted string cannot be recognized reliably.
    """
    return (
        each
        for each in shell_commands
        if each.words[0].text in COMMAND_READERS.keys() | FILTER_PROGRAMS
    )


FILTER_PROGRAMS = frozenset({"jq", "gojq", "jaq"})
#: Pattern for a field in the form `.name`, `."name"`, `["name"]` or `{name}`.
_READ_FIELD_PATTERN = re.compile(r"""[.\[{,]\s*"?([A-Za-z_]\w*+)""")
#: Maximum number of characters that are read from a filter.
_MAX_FILTER_LENGTH = 64 * 1024


def find_fields_read_by_filter(
    words: Sequence[ShellWord], requests: Sequence[Request]
) -> Iterator[DetectedChange]:
    """Yield the changes that affect the response fields read by a filter."""
    changing = {
        field.rpartition(".")[2]: concern.change
        for request in requests
        for concern in find_path_matches(find_api_path(request.url_parts.path) or "")
        if not concern.call.methods or request.method in concern.call.methods
        for field in concern.call.fields
    }
    for word in words:
        for found in (
            _READ_FIELD_PATTERN.finditer(word.text[:_MAX_FILTER_LENGTH]) if changing else ()
        ):
            change = changing.get(found[1])
            if change is not None:
                line = word.line + word.text.count("\n", 0, found.start())
                yield DetectedChange(change, line, f"The field {found[1]} of a response")
