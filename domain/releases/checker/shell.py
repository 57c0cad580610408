"""Reads commands of a shell: requests of curl, wget, HTTPie and glab, and variables.

Of a pipe to jq, as in `curl … | jq '.assets.links[].external'`, also the fields that it reads.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from domain.releases.checker.command_lines import READERS, Word, runner_registration
from domain.releases.checker.deadline import paced
from domain.releases.checker.findings import Found
from domain.releases.checker.graphql import check_graphql_request
from domain.releases.checker.names import names_in_text
from domain.releases.checker.requests import Request, judge
from domain.releases.checker.routes import api_path, concerns_of

_PART = re.compile(
    r"""(?P<space>(?:[ \t\r]|\\\r?\n)++)
    |(?P<comment>(?<![^\s;|&(])\#[^\n]*+)
    |(?P<end>\n|;|\|\|?|&&?|[()`])
    |\$?'(?P<single>[^']*+)(?:'|\Z)
    |\$?"(?P<double>(?:[^"\\]|\\.)*+)(?:"|\\?\Z)
    |(?P<plain>(?:\\[^\n]|[^\s'"|&;()`\\])++|\\)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
#: What is put before a command, and may be before one that is looked for.
_BEFORE = frozenset({"sudo", "time", "$", "-", "exec", "command", "then", "do", "if", "!", "else"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class Command(NamedTuple):
    """A command, as its words."""

    words: Sequence[Word]
    #: Whether it reads what the command before it writes.
    is_behind_pipe: bool


def check_shell(text: str, line: int = 1, *, is_client: bool = True) -> Iterator[Found]:
    """Yield what changes for the commands of a text that begins at a line."""
    for command in commands(text, line):
        for word in command.words:
            yield from names_in_text(word.text, word.line, is_client=is_client)
        joined = " ".join(
            word.text for word in command.words if word.text.startswith(("--tls", "1."))
        )
        yield from names_in_text(joined, command.words[0].line, only="tls-versions")
        yield from runner_registration(command.words)
    yield from _requests(commands(text, line))


def commands(text: str, line: int) -> Iterator[Command]:
    """Yield the commands of a text."""
    command, is_behind_pipe = _Command(), False
    for found in paced(_PART.finditer(text)):
        kind = found.lastgroup or "plain"
        if kind in {"single", "double", "plain"}:
            command.add(_unquoted(kind, found[0] if found[kind] is None else found[kind]), line)
        else:
            command.end_word()
        if kind == "end" and command.words:
            yield Command(command.words, is_behind_pipe)
            command = _Command()
        if kind == "end":
            # A line may end behind a pipe.
            is_behind_pipe = found[0] == "|" or (found[0] == "\n" and is_behind_pipe)
        line += found[0].count("\n")
    command.end_word()
    if command.words:
        yield Command(command.words, is_behind_pipe)


class _Command:
    """A command that is being read."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self._parts: list[str] = []
        self._line = 1

    def add(self, part: str, line: int) -> None:
        """Add a part of a word."""
        self._line = self._line if self._parts else line
        self._parts.append(part)

    def end_word(self) -> None:
        """End the word, if there is one."""
        if self._parts:
            self.words.append(Word("".join(self._parts), self._line))
            self._parts = []


def _unquoted(kind: str, text: str) -> str:
    if kind == "single" or "\\" not in text:
        return text
    if kind == "double":
        return re.sub(r'\\(["\\$`\n])', r"\1", text)
    return _ESCAPE.sub(r"\1", text)


def _requests(listed: Iterator[Command]) -> Iterator[Found]:
    """Yield what changes for requests, and for fields of their responses that a filter reads."""
    sent: list[Request] = []
    for command in listed:
        words = list(command.words)
        while words and (words[0].text in _BEFORE or _ASSIGNMENT.match(words[0].text)):
            del words[0]
        name = words[0].text.rpartition("/")[2] if words else ""
        reader = READERS.get(name)
        if command.is_behind_pipe and name in FILTERS:
            yield from fields_read(words[1:], sent)
        elif reader is not None:
            sent = list(reader(words[1:]))
            yield from _judged(sent)
        else:
            sent = sent if command.is_behind_pipe else []
            # `"$(curl …)"`, or a program that is handed a command.
            yield from _nested(command.words)


def _judged(sent: Sequence[Request]) -> Iterator[Found]:
    for request in sent:
        yield from judge(request)
        if "/graphql" in request.url and request.body:
            for found in check_graphql_request(request.body):
                yield found._replace(line=request.line)


def _nested(words: Sequence[Word]) -> Iterator[Found]:
    for word in words:
        for name in ("curl ", "glab api "):
            at = word.text.find(name)
            if at >= 0:
                inner = word.text[at:].rstrip(")`")
                line = word.line + word.text.count("\n", 0, at)
                yield from _requests(_of_readers(commands(inner, line)))


def _of_readers(listed: Iterator[Command]) -> Iterator[Command]:
    """Yield the commands that send requests or read responses: a text holds no others for sure."""
    return (each for each in listed if each.words[0].text in READERS.keys() | FILTERS)


FILTERS = frozenset({"jq", "gojq", "jaq"})
#: `.name`, `."name"`, `["name"]`, and `{name}`.
_READ = re.compile(r"""[.\[{,]\s*"?([A-Za-z_]\w*+)""")
#: Longer filters are read up to here.
_LONGEST = 64 * 1024


def fields_read(words: Sequence[Word], sent: Sequence[Request]) -> Iterator[Found]:
    """Yield the fields that a filter reads of the responses to requests."""
    changing = {
        field.rpartition(".")[2]: concern.change
        for request in sent
        for concern in concerns_of(api_path(request.parts.path) or "")
        if not concern.call.methods or request.method in concern.call.methods
        for field in concern.call.fields
    }
    for word in words:
        for found in _READ.finditer(word.text[:_LONGEST]) if changing else ():
            change = changing.get(found[1])
            if change is not None:
                line = word.line + word.text.count("\n", 0, found.start())
                yield Found(change, line, f"The field {found[1]} of a response")
