"""The calls of a program: what is called, with which texts and names, and what variables hold."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from domain.releases.checker.deadline import paced
from domain.releases.checker.names import snake
from domain.releases.checker.parameters import Known
from domain.releases.checker.routes import UNKNOWN
from domain.releases.checker.tokens import NAME, NUMBER, SIGN, TEXT, Token

_OPENING = {"(": ")", "[": "]", "{": "}"}
_DOTS = frozenset({".", "?.", "::", "->"})
#: Steps back from a parenthesis to the beginning of what is called.
_LONGEST_CHAIN = 16
#: Arguments are read up to so many tokens.
_LONGEST_ARGUMENTS = 300
_SHORTEST_BUDGET = 10_000
#: Arguments that may be segments of a path are looked for in so many tokens.
_LONGEST_SEGMENTS = 40
_SEGMENT = re.compile(r"[a-z][a-z_]*+")
_SKIPPED = frozenset({"await", "new", "yield", "return", "async"})
_SETS = frozenset({"=", ":", "=>", ":="})
#: Names of arguments that hold parameters.
_CONTAINERS = frozenset(
    [
        "params",
        "json",
        "data",
        "query",
        "query_data",
        "query_params",
        "search_params",
        "post_data",
        "body",
        "form",
        "payload",
        "options",
        "fields",
        "qs",
        "search",
    ]
)
#: Names of arguments and variables that hold no parameters.
_NO_PARAMETERS = frozenset(
    [
        "this",
        "self",
        "url",
        "uri",
        "path",
        "endpoint",
        "headers",
        "header",
        "auth",
        "timeout",
        "verify",
        "proxies",
        "cookies",
        "cookie",
        "method",
        "none",
        "null",
        "nil",
        "true",
        "false",
        "undefined",
        "ctx",
        "context",
        "callback",
        "cb",
        "token",
    ]
)


@dataclass(frozen=True)
class Call:
    """A call in a program, by positions of its tokens."""

    #: The words of what is called, in small letters with `_`.
    chain: tuple[str, ...]
    start: int
    opening: int
    closing: int


class Segments(NamedTuple):
    """A path whose segments are arguments of a call, with the positions of the first and last."""

    path: str
    first: int
    last: int


class Program:
    """The tokens of a program, with its parentheses paired."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        """Pair parentheses; what is open at the end is closed there."""
        self.tokens = tokens
        #: The other one, by position.
        self.pairs: dict[int, int] = {}
        #: The innermost opening one around each token, or -1.
        self.around: list[int] = []
        self._pair()

    def _pair(self) -> None:
        stack: list[int] = []
        for at, token in enumerate(paced(self.tokens)):
            is_sign = token.kind == SIGN
            if is_sign and token.text in ")]}" and stack:
                opening = stack.pop()
                self.pairs[opening] = at
                self.pairs[at] = opening
            self.around.append(stack[-1] if stack else -1)
            if is_sign and token.text in _OPENING:
                stack.append(at)
        for opening in stack:
            self.pairs[opening] = len(self.tokens)

    def text(self, at: int) -> str:
        """Return the token at a position if it is a sign or name, else nothing."""
        if 0 <= at < len(self.tokens) and self.tokens[at].kind in {SIGN, NAME}:
            return self.tokens[at].text
        return ""

    def kind(self, at: int) -> str:
        """Return the kind of the token at a position; of none it is empty."""
        return self.tokens[at].kind if 0 <= at < len(self.tokens) else ""

    def call_at(self, opening: int) -> Call:
        """Return the call of an opening parenthesis; its chain is empty if nothing is called."""
        chain, start = self.chain_before(opening)
        return Call(chain, start, opening, self.pairs.get(opening, len(self.tokens)))

    def chain_before(self, end: int) -> tuple[tuple[str, ...], int]:
        """Return the words that lead to a position, such as `gl.users.list`, and where they begin.

        Arguments and indexes between them are left out.
        """
        words: list[str] = []
        at = end - 1
        for _ in range(_LONGEST_CHAIN):
            while self.text(at) in {")", "]", "!", "?", ">"} and at > 0:
                at = self.pairs.get(at, at) - 1
            if self.kind(at) != NAME:
                break
            words.append(snake(self.tokens[at].text.lstrip("@$")))
            at -= 1
            if self.text(at) not in _DOTS:
                break
            at -= 1
        return tuple(reversed(words)), at + 1

    def calls_around(self, at: int) -> Iterator[Call]:
        """Yield the calls that a token is an argument of, the innermost first, at most three."""
        opening = self.around[at]
        for _ in range(6):
            if opening < 0:
                return
            if self.text(opening) == "(":
                call = self.call_at(opening)
                if call.chain:
                    yield call
            opening = self.around[opening]


class Arguments:
    """Reads what the arguments of calls, and the objects that variables hold, say by name."""

    def __init__(self, program: Program) -> None:
        """Take the program."""
        self._program = program
        #: Where the object begins that a variable holds.
        self.objects: dict[str, int] = {}
        #: Variables that hold a text or number.
        self.plain: set[str] = set()
        #: Tokens that may still be read: calls in calls in calls are not read for each of them.
        self._budget = _SHORTEST_BUDGET + 2 * len(program.tokens)

    def add(self, known: Known, opening: int, closing: int, *, is_nested: bool = False) -> None:
        """Add the names in arguments or in an object, with values that are written there."""
        end = min(closing, opening + min(_LONGEST_ARGUMENTS, self._budget))
        self._budget -= end - opening
        known.is_open = known.is_open or end < closing
        for at in range(opening + 1, end):
            token = self._program.tokens[at]
            if token.kind in {NAME, TEXT}:
                self._add_at(known, at, token, is_nested=is_nested)
            elif token.text in {"**", "..."}:
                known.is_open = True

    def _add_at(self, known: Known, at: int, token: Token, *, is_nested: bool) -> None:
        name, behind = snake(token.text), self._program.text(at + 1)
        if behind in _SETS and self._program.text(at - 1) not in _DOTS:
            known.add(name, self._value(at + 2))
            if name in _CONTAINERS:
                self._follow(known, at + 2, is_nested=is_nested)
        elif behind in {",", "}", ")", ""} and token.kind == NAME:
            self._bare(known, at, name, is_nested=is_nested)

    def _bare(self, known: Known, at: int, name: str, *, is_nested: bool) -> None:
        """Take a variable that is handed on: an object, or `{page}` for `{page: page}`."""
        around = self._program.around[at]
        before = self._program.text(at - 1)
        if self._program.text(around) == "{" and before in {"{", ","}:
            known.add(name, None)
        elif before in {"(", ",", "**", "..."}:
            self._follow(known, at, is_nested=is_nested)

    def _follow(self, known: Known, at: int, *, is_nested: bool) -> None:
        """Add what the variable at a position holds."""
        if self._program.kind(at) != NAME or self._program.text(at + 1) in _DOTS | {"("}:
            return
        name = snake(self._program.tokens[at].text)
        opening = self.objects.get(name)
        if opening is None:
            known.is_open = known.is_open or name not in _NO_PARAMETERS | self.plain
        elif not is_nested:
            closing = self._program.pairs.get(opening, opening)
            self.add(known, opening, closing, is_nested=True)

    def _value(self, at: int) -> str | None:
        """Return a text or number that is the whole value, or None."""
        if self._program.kind(at) not in {TEXT, NUMBER}:
            return None
        if self._program.text(at + 1) not in {",", ")", "}", "]", ";", ""}:
            return None
        token = self._program.tokens[at]
        if token.is_template and "{" in token.text:
            return None
        return token.text

    def note(self, at: int) -> None:
        """Note the object that the assignment at a position, of its sign, gives to a variable."""
        name = snake(self._program.tokens[at - 1].text)
        value = at + 1
        if self._program.text(value) == "dict" and self._program.text(value + 1) == "(":
            value += 1
        if self._program.text(value) in {"{", "("}:
            self.objects[name] = value
        else:
            self.objects.pop(name, None)
        if self._program.kind(value) in {TEXT, NUMBER}:
            self.plain.add(name)
        else:
            self.plain.discard(name)


def unskipped(program: Program, at: int) -> int:
    """Return the position behind words such as `await`."""
    while program.text(at) in _SKIPPED:
        at += 1
    return at


def literal(program: Program, at: int) -> tuple[str, int]:
    """Return a text with what is added to it by `+`, UNKNOWN for values, and where it ends."""
    parts = [program.tokens[at].text]
    for _ in range(20):
        if program.text(at + 1) not in {"+", "."} or program.kind(at + 1) != SIGN:
            break
        following = at + 2
        if program.kind(following) == TEXT:
            parts.append(program.tokens[following].text)
            at = following
        elif (end := _end_of_added(program, at + 1)) is not None:
            parts.append(UNKNOWN)
            at = end
        else:
            break
    return "".join(parts), at


def _end_of_added(program: Program, sign: int) -> int | None:
    """Return where a value ends that `+` or `.` adds to a text, or None for a member of it."""
    if program.kind(sign + 1) != NAME:
        return None
    end = _end_of_value(program, sign + 1)
    # In PHP a dot adds: `'projects/' . $id . '/runners'`.
    is_added = program.text(sign) == "+" or (
        program.text(end + 1) == "." and program.kind(end + 2) == TEXT
    )
    return end if is_added else None


def joined_segments(program: Program, call: Call) -> Segments | None:
    """Return the path that the texts of a call are segments of, or None.

    So gitlab4j writes it: `post(status, form, "projects", id, "runners")`.
    """
    parts: list[str] = []
    first = last = -1
    for at in _arguments(program, call):
        if program.kind(at) == TEXT:
            if not is_segment(program.tokens[at].text):
                return None
            first, last = (at if first < 0 else first), at
        if first >= 0:
            parts.append(program.tokens[at].text if last == at else UNKNOWN)
    while parts and parts[-1] == UNKNOWN:
        del parts[-1]
    return Segments("/".join(parts), first, last) if parts else None


def is_segment(text: str) -> bool:
    """Return whether a text is one segment of a path of the API."""
    return _SEGMENT.fullmatch(text) is not None


def _arguments(program: Program, call: Call) -> Iterator[int]:
    """Yield where the first arguments of a call begin."""
    at = call.opening + 1
    for _ in range(_LONGEST_SEGMENTS):
        if at >= call.closing:
            return
        if program.text(at - 1) == "," or at == call.opening + 1:
            yield at
        at = max(program.pairs.get(at, at), at) + 1


def _end_of_value(program: Program, at: int) -> int:
    """Return the last position of a variable with its members, calls and indexes."""
    for _ in range(_LONGEST_CHAIN):
        if program.text(at + 1) in _DOTS and program.kind(at + 2) == NAME:
            at += 2
        elif program.text(at + 1) in {"(", "["}:
            at = program.pairs.get(at + 1, at + 1)
        else:
            break
    return at
