"""Reads JSON with the lines of its values, in one pass and without recursion.

The parsers at hand say where an error is, but not where a value was.
"""

import json
import re
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

from domain.releases.checker.deadline import paced
from domain.releases.checker.findings import UnreadableContentError

DEPTH = 200
#: A whole token; strings of a HAR hold whole pages.
_TOKEN = re.compile(
    r'[ \t\r\n]*+("(?:[^"\\\x00-\x1f]|\\.)*+"|[{}\[\]:,]|-?[0-9][0-9.eE+-]*+|true|false|null)'
)
_SPACES = re.compile(r"[ \t\r\n]*+")
_NO_JSON = "The content is not valid JSON"


class Json(NamedTuple):
    """A value, and the line that it begins in."""

    value: Any
    line: int

    def get(self, name: str) -> "Json | None":
        """Return a member of an object, or None."""
        return self.value.get(name) if isinstance(self.value, dict) else None

    @property
    def items(self) -> list["Json"]:
        """Return the items of a list; of anything else none."""
        return self.value if isinstance(self.value, list) else []

    @property
    def text(self) -> str:
        """Return the value if it is a text, else an empty one."""
        return self.value if isinstance(self.value, str) else ""

    def text_of(self, name: str) -> str:
        """Return a member that is a text, or an empty one."""
        found = self.get(name)
        return found.text if found else ""


#: Says whether the value of a name is needed; others are read over.
Wanted = Callable[[str], bool]


class _Reader:
    """Makes values of tokens."""

    def __init__(self, text: str, wanted: Wanted) -> None:
        self._text = text
        self._wanted = wanted
        self._at = 0
        self._line = 1

    def value(self) -> Json:
        """Return the one value of the text."""
        found = self._nested()
        if self._text[self._at :].strip(" \t\r\n"):
            raise self._error()
        return found

    def _sign(self) -> str:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise self._error()
        self._line += self._text.count("\n", self._at, found.start(1))
        self._at = found.end()
        return found[1]

    def _error(self) -> UnreadableContentError:
        spaces = _SPACES.match(self._text, self._at)
        end = spaces.end() if spaces else self._at
        line = self._line + self._text.count("\n", self._at, end)
        return UnreadableContentError(_NO_JSON, line=line)

    def _nested(self) -> Json:
        """Read a value with all that it holds, by a stack of what is open."""
        stack: list[_Open] = []
        steps = paced(count())
        while True:
            next(steps)
            sign = self._sign()
            if sign in "}]" and stack and stack[-1].may_end(sign):
                found = Json(stack[-1].container, stack.pop().line)
            elif sign in "{[":
                stack.append(self._opened(sign, stack))
                continue
            elif stack and stack[-1].expects_name:
                self._name(sign, stack[-1])
                continue
            else:
                found = Json(self._scalar(sign, stack), self._line)
            if not stack:
                return found
            stack[-1].add(found)
            self._separator(stack)

    def _opened(self, sign: str, stack: list["_Open"]) -> "_Open":
        if len(stack) >= DEPTH:
            raise UnreadableContentError("The JSON is nested too deeply", line=self._line)
        if stack and stack[-1].expects_name:
            raise self._error()
        is_kept = not stack or (stack[-1].is_kept and stack[-1].is_value_kept)
        return _Open(sign, self._line, is_kept=is_kept)

    def _name(self, sign: str, opened: "_Open") -> None:
        if not sign.startswith('"') or self._sign() != ":":
            raise self._error()
        opened.begin(self._decoded(sign))
        opened.is_value_kept = self._wanted(opened.name)

    def _scalar(self, sign: str, stack: list["_Open"]) -> Any:
        if sign in "}]:,":
            raise self._error()
        if stack and not (stack[-1].is_kept and stack[-1].is_value_kept):
            return None
        return self._decoded(sign)

    def _decoded(self, sign: str) -> Any:
        try:
            return json.loads(sign)
        except ValueError as error:  # a number such as 1.2.3 or of too many digits
            raise self._error() from error

    def _separator(self, stack: list["_Open"]) -> None:
        """Go on behind a comma, or leave the end of the container to the next step."""
        before, line = self._at, self._line
        sign = self._sign()
        if sign == ",":
            stack[-1].go_on()
        elif sign in "}]":
            self._at, self._line = before, line
            stack[-1].is_full = True
        else:
            raise self._error()


class _Open:
    """An object or list that is being read."""

    def __init__(self, sign: str, line: int, *, is_kept: bool) -> None:
        self.is_object = sign == "{"
        self.line = line
        self.is_kept = is_kept
        self.is_value_kept = True
        self.container: Any = {} if self.is_object else []
        self.expects_name = self.is_object
        self.is_full = False
        self.name = ""
        self._is_behind_comma = False
        self._is_begun = False

    def may_end(self, sign: str) -> bool:
        """Return whether this sign ends it here."""
        is_own = (sign == "}") == self.is_object
        return is_own and not self._is_behind_comma and (self.is_full or not self._is_begun)

    def begin(self, name: str) -> None:
        """Take the name of the next value."""
        self.name = name
        self.expects_name = False
        self._is_begun = True

    def add(self, found: Json) -> None:
        """Add a value."""
        self._is_behind_comma = False
        self._is_begun = True
        if not (self.is_kept and self.is_value_kept):
            return
        if self.is_object:
            self.container[self.name] = found
        else:
            self.container.append(found)

    def go_on(self) -> None:
        """Expect another value behind a comma."""
        self._is_behind_comma = True
        self.expects_name = self.is_object


def read_json(text: str, wanted: Wanted = lambda _: True) -> Json:
    """Return the value of a JSON text; raise UnreadableContentError.

    A member that is not wanted is checked, and left out.
    """
    return _Reader(text, wanted).value()
