"""Reads lists of requests with a method and a URL per line, including headers and bodies."""

import re
from collections.abc import Iterator

from domain.releases.checker.findings import (
    DetectedChange,
    UnreadableContentError,
    read_numbered_lines,
)
from domain.releases.checker.graphql import check_graphql_request
from domain.releases.checker.requests import Request, find_request_changes
from domain.releases.checker.shell_commands import check_shell

_REQUEST_PATTERN = re.compile(
    r"[\s>*-]*(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)[ \t:]+"
    r"((?:https?://|/|\{\{|api/v4)\S*|\w[\w.-]*/api/\S*)(?:[ \t]+HTTP/[0-9.]+)?[ \t]*(.*)",
    re.DOTALL,
)
_HEADER_PATTERN = re.compile(r"([A-Za-z][A-Za-z0-9-]*):\s")
_COMMAND_PATTERN = re.compile(r"\s*(?:\$ )?(?:curl|wget|https?|glab) ")
#: Maximum number of characters that are read from a body.
_MAX_BODY_LENGTH = 1024 * 1024


def is_request_line(line: str) -> bool:
    """Return whether a line starts a request."""
    return _REQUEST_PATTERN.match(line[:4_000]) is not None


def is_command_line(line: str) -> bool:
    """Return whether a line is a command that sends a request."""
    return _COMMAND_PATTERN.match(line[:4_000]) is not None


def check_request_list(text: str) -> Iterator[DetectedChange]:
    """Yield the changes that affect the requests in a list.

    Raise UnreadableContentError if the list contains no requests.
    """
    is_read, has_commands, block = False, False, _RequestBlock()
    for number, line in read_numbered_lines(text):
        if is_command_line(line):
            is_read = has_commands = True
            yield from block.finish_request()
        elif found := _REQUEST_PATTERN.match(line):
            is_read = True
            yield from block.finish_request()
            block = _RequestBlock(found[1], found[2], number)
            block.add_url_remainder(found[3])
        else:
            block.add_request_line(line)
    yield from block.finish_request()
    if has_commands:
        yield from check_shell(text)
    if not is_read and text.strip():
        raise UnreadableContentError("The content contains no requests", line=1)


class _RequestBlock:
    """A request with the lines below it."""

    def __init__(self, method: str = "", url: str = "", line: int = 0) -> None:
        self._method, self._url, self._line = method, url, line
        self._headers: set[str] = set()
        self._body: list[str] = []
        self._length = 0
        self._is_body = False

    def add_url_remainder(self, text: str) -> None:
        """Add the text after the URL: parameters or JSON."""
        if "=" in text or text.startswith("{"):
            plain = text if text.startswith("{") else re.sub(r"\s+", "&", text.strip())
            self._add_body_text(plain)

    def add_request_line(self, line: str) -> None:
        """Add a line that follows the URL, such as a header or a line of the body."""
        if not line.strip():
            self._is_body = bool(self._headers) or self._is_body
        elif line.startswith("#"):
            self._is_body = False
        elif not self._is_body and (header := _HEADER_PATTERN.match(line)):
            self._headers.add(header[1].lower())
        elif self._is_body or line.lstrip().startswith("{"):
            self._is_body = True
            self._add_body_text(line)

    def _add_body_text(self, text: str) -> None:
        self._length += len(text)
        if self._length <= _MAX_BODY_LENGTH:
            self._body.append(text)

    def finish_request(self) -> Iterator[DetectedChange]:
        """Yield the changes that affect the request, and end the request."""
        if not self._method:
            return
        body = "\n".join(self._body)
        request = Request(
            method=self._method,
            url=self._url,
            line=self._line,
            body=body,
            has_body=bool(body),
            headers=frozenset(self._headers),
        )
        self._method = ""
        yield from find_request_changes(request)
        if body and "/graphql" in self._url:
            for found in check_graphql_request(body):
                yield found._replace(line=self._line)
