"""Calls in a program, and variables that contain responses or URLs."""

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from domain.releases.changes import Change
from domain.releases.checker.distinctive_names import to_snake_case
from domain.releases.checker.findings import DetectedChange, iterate_within_limit
from domain.releases.checker.requests import UNKNOWN_PART, KnownParameters
from domain.releases.checker.tokens import NAME, NUMBER, SIGN, TEXT, Token

_BRACKET_PAIRS = {"(": ")", "[": "]", "{": "}"}
#: Maximum number of steps back from a parenthesis to the start of the called expression.
_MAX_CHAIN_STEPS = 16
#: Maximum number of tokens that are read as arguments.
_MAX_ARGUMENT_TOKENS = 300
_MIN_TOKEN_BUDGET = 10_000
#: Maximum number of tokens that are searched for path segments.
_MAX_SEGMENT_TOKENS = 40
_SEGMENT_PATTERN = re.compile(r"[a-z][a-z_]*+")
_SKIPPED_KEYWORDS = frozenset({"await", "new", "yield", "return", "async"})
_ASSIGNMENT_SIGNS = frozenset({"=", ":", "=>", ":="})
#: Names of arguments that contain parameters.
_PARAMETER_CONTAINERS = frozenset(
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
_MEMBER_SIGNS = frozenset({".", "?.", "::", "->"})
#: Functions that pass each item, or a result, to another function.
_ITERATION_FUNCTIONS = frozenset(
    [
        "map",
        "for_each",
        "filter",
        "find",
        "some",
        "every",
        "each",
        "then",
        "flat_map",
        "reduce",
        "find_all",
        "any",
    ]
)
#: Methods of python-gitlab's managers. In `package.pipelines.list()`, for example, `pipelines` is a
#: manager and not a field.
_MANAGER_METHODS = frozenset({"list", "get", "create", "delete", "update"})
#: Functions that replace the placeholders in their first argument.
_FORMAT_FUNCTIONS = frozenset({"sprintf", "format"})
#: Number of lines after which the URL in a variable is discarded.
_ADDRESS_LIFETIME_LINES = 40
_MAX_ACCESS_STEPS = 12
_MAX_COMPREHENSION_TOKENS = 120
_MAX_CHAIN_WORDS = 12
ChangesByField = Mapping[str, Change]
#: Names of arguments and variables that do not contain parameters.
_NON_PARAMETER_NAMES = frozenset(
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
class ProgramCall:
    """A function call in a program, with the positions of its tokens."""

    #: Names in the called expression, in snake case.
    chain: tuple[str, ...]
    start: int
    opening: int
    closing: int


class JoinedPath(NamedTuple):
    """A path whose segments are arguments of a call.

    `first` and `last` are the positions of the first and the last segment.
    """

    path: str
    first: int
    last: int


class SourceProgram:
    """The tokens of a program, with matched brackets."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        """Store the tokens, and match the brackets.

        A bracket that is never closed ends at the end of the program.
        """
        self.tokens = tokens
        #: Positions of the matching brackets.
        self.pairs: dict[int, int] = {}
        #: Position of the innermost bracket around each token, or -1.
        self.around: list[int] = []
        self._match_brackets()

    def _match_brackets(self) -> None:
        stack: list[int] = []
        for at, token in enumerate(iterate_within_limit(self.tokens)):
            is_sign = token.kind == SIGN
            if is_sign and token.text in ")]}" and stack:
                opening = stack.pop()
                self.pairs[opening] = at
                self.pairs[at] = opening
            self.around.append(stack[-1] if stack else -1)
            if is_sign and token.text in _BRACKET_PAIRS:
                stack.append(at)
        for opening in iterate_within_limit(stack):
            self.pairs[opening] = len(self.tokens)

    def get_text(self, position: int) -> str:
        """Return the text of the symbol or name at a position, or an empty string otherwise."""
        if 0 <= position < len(self.tokens) and self.tokens[position].kind in {SIGN, NAME}:
            return self.tokens[position].text
        return ""

    def get_token_kind(self, position: int) -> str:
        """Return the kind of the token at a position, or an empty string outside the program."""
        return self.tokens[position].kind if 0 <= position < len(self.tokens) else ""

    def get_call_at(self, opening: int) -> ProgramCall:
        """Return the call at an opening parenthesis.

        The chain of the call is empty if no name precedes the parenthesis.
        """
        chain, start = self.get_chain_before(opening)
        return ProgramCall(chain, start, opening, self.pairs.get(opening, len(self.tokens)))

    def get_chain_before(self, end: int) -> tuple[tuple[str, ...], int]:
        """Return the names before a position, such as `gl.users.list`, and their start position.

        Arguments and indexes between the names are omitted.
        """
        words: list[str] = []
        at = end - 1
        for _ in range(_MAX_CHAIN_STEPS):
            while self.get_text(at) in {")", "]", "!", "?", ">"} and at > 0:
                at = self.pairs.get(at, at) - 1
            if self.get_token_kind(at) != NAME:
                break
            words.append(to_snake_case(self.tokens[at].text.lstrip("@$")))
            at -= 1
            if self.get_text(at) not in _MEMBER_SIGNS:
                break
            at -= 1
        return tuple(reversed(words)), at + 1

    def iterate_enclosing_calls(self, position: int) -> Iterator[ProgramCall]:
        """Yield the calls whose arguments contain the token at a position, innermost first."""
        opening = self.around[position]
        for _ in range(6):
            if opening < 0:
                return
            if self.get_text(opening) == "(":
                call = self.get_call_at(opening)
                if call.chain:
                    yield call
            opening = self.around[opening]


class ArgumentReader:
    """A reader of named values in call arguments and in objects that variables contain."""

    def __init__(self, program: SourceProgram) -> None:
        """Store the program, and set the number of tokens that can be read."""
        self._program = program
        #: Positions of the objects that variables contain, by variable.
        self.objects: dict[str, int] = {}
        #: Variables that contain a string or a number.
        self.plain: set[str] = set()
        #: Number of tokens that may still be read. The limit prevents nested calls from being read
        #: too often.
        self._budget = _MIN_TOKEN_BUDGET + 2 * len(program.tokens)

    def add_arguments(
        self, parameters: KnownParameters, opening: int, closing: int, *, is_nested: bool = False
    ) -> None:
        """Add the names in a call's arguments or in an object, with literal values or None."""
        end = min(closing, opening + min(_MAX_ARGUMENT_TOKENS, self._budget))
        self._budget -= end - opening
        parameters.is_open = parameters.is_open or end < closing
        for at in range(opening + 1, end):
            token = self._program.tokens[at]
            if token.kind in {NAME, TEXT}:
                self._add_argument_at(parameters, at, token, is_nested=is_nested)
            elif token.text in {"**", "..."}:
                parameters.is_open = True

    def _add_argument_at(
        self, parameters: KnownParameters, position: int, token: Token, *, is_nested: bool
    ) -> None:
        name, behind = to_snake_case(token.text), self._program.get_text(position + 1)
        if (
            behind in _ASSIGNMENT_SIGNS
            and self._program.get_text(position - 1) not in _MEMBER_SIGNS
        ):
            parameters.add_parameter(name, self._read_literal_value(position + 2))
            if name in _PARAMETER_CONTAINERS:
                self._add_variable_contents(parameters, position + 2, is_nested=is_nested)
        elif behind in {",", "}", ")", ""} and token.kind == NAME:
            self._add_passed_variable(parameters, position, name, is_nested=is_nested)

    def _add_passed_variable(
        self, parameters: KnownParameters, position: int, name: str, *, is_nested: bool
    ) -> None:
        """Add a variable that is passed as an argument or as a shorthand such as `{page}`."""
        around = self._program.around[position]
        before = self._program.get_text(position - 1)
        if self._program.get_text(around) == "{" and before in {"{", ","}:
            parameters.add_parameter(name, None)
        elif before in {"(", ",", "**", "..."}:
            self._add_variable_contents(parameters, position, is_nested=is_nested)

    def _add_variable_contents(
        self, parameters: KnownParameters, position: int, *, is_nested: bool
    ) -> None:
        """Add the members of the object that a variable contains to the known parameters."""
        if self._program.get_token_kind(position) != NAME or self._program.get_text(
            position + 1
        ) in _MEMBER_SIGNS | {"("}:
            return
        name = to_snake_case(self._program.tokens[position].text)
        opening = self.objects.get(name)
        if opening is None:
            parameters.is_open = parameters.is_open or name not in _NON_PARAMETER_NAMES | self.plain
        elif not is_nested:
            closing = self._program.pairs.get(opening, opening)
            self.add_arguments(parameters, opening, closing, is_nested=True)

    def _read_literal_value(self, position: int) -> str | None:
        """Return the string or number at a position, or None if it is not the entire value."""
        if self._program.get_token_kind(position) not in {TEXT, NUMBER}:
            return None
        if self._program.get_text(position + 1) not in {",", ")", "}", "]", ";", ""}:
            return None
        token = self._program.tokens[position]
        if token.is_template and "{" in token.text:
            return None
        return token.text

    def record_assigned_object(self, position: int) -> None:
        """Record the object assigned to a variable.

        `position` is the position of the assignment operator.
        """
        name = to_snake_case(self._program.tokens[position - 1].text)
        value = position + 1
        if self._program.get_text(value) == "dict" and self._program.get_text(value + 1) == "(":
            value += 1
        if self._program.get_text(value) in {"{", "("}:
            self.objects[name] = value
        else:
            self.objects.pop(name, None)
        if self._program.get_token_kind(value) in {TEXT, NUMBER}:
            self.plain.add(name)
        else:
            self.plain.discard(name)


def skip_keywords(program: SourceProgram, position: int) -> int:
    """Return the first position that does not contain a keyword such as `await`."""
    while program.get_text(position) in _SKIPPED_KEYWORDS:
        position += 1
    return position


def read_literal(program: SourceProgram, position: int) -> tuple[str, int]:
    """Return a string joined with the values that `+` appends, and the last token's position.

    UNKNOWN_PART stands for appended values that are not literals.
    """
    parts = [program.tokens[position].text]
    for _ in range(20):
        if (
            program.get_text(position + 1) not in {"+", "."}
            or program.get_token_kind(position + 1) != SIGN
        ):
            break
        following = position + 2
        if program.get_token_kind(following) == TEXT:
            parts.append(program.tokens[following].text)
            position = following
        elif (end := _find_appended_value_end(program, position + 1)) is not None:
            parts.append(UNKNOWN_PART)
            position = end
        else:
            break
    return "".join(parts), position


def _find_appended_value_end(program: SourceProgram, sign: int) -> int | None:
    """Return the end of a value that `+` or `.` appends to a string.

    Return None if `.` accesses a member, or if no variable follows the operator.
    """
    if program.get_token_kind(sign + 1) != NAME:
        return None
    end = _find_value_end(program, sign + 1)
    # In PHP, the dot appends strings: `'projects/' . $id . '/runners'`.
    is_added = program.get_text(sign) == "+" or (
        program.get_text(end + 1) == "." and program.get_token_kind(end + 2) == TEXT
    )
    return end if is_added else None


def join_segments(program: SourceProgram, call: ProgramCall) -> JoinedPath | None:
    """Return the path whose segments are the arguments of a call, or None.

    For example, gitlab4j uses `post(status, form, "projects", id, "runners")`.
    """
    parts: list[str] = []
    first = last = -1
    for at in _find_argument_positions(program, call):
        if program.get_token_kind(at) == TEXT:
            if not is_path_segment(program.tokens[at].text):
                return None
            first, last = (at if first < 0 else first), at
        if first >= 0:
            parts.append(program.tokens[at].text if last == at else UNKNOWN_PART)
    while parts and parts[-1] == UNKNOWN_PART:
        del parts[-1]
    return JoinedPath("/".join(parts), first, last) if parts else None


def is_path_segment(text: str) -> bool:
    """Return whether a string is a single segment of an API path."""
    return _SEGMENT_PATTERN.fullmatch(text) is not None


def _find_argument_positions(program: SourceProgram, call: ProgramCall) -> Iterator[int]:
    """Yield the start positions of the first arguments of a call."""
    at = call.opening + 1
    for _ in range(_MAX_SEGMENT_TOKENS):
        if at >= call.closing:
            return
        if program.get_text(at - 1) == "," or at == call.opening + 1:
            yield at
        at = max(program.pairs.get(at, at), at) + 1


def _find_value_end(program: SourceProgram, position: int) -> int:
    """Return the last position of a variable with its members, calls and indexes."""
    for _ in range(_MAX_CHAIN_STEPS):
        if (
            program.get_text(position + 1) in _MEMBER_SIGNS
            and program.get_token_kind(position + 2) == NAME
        ):
            position += 2
        elif program.get_text(position + 1) in {"(", "["}:
            position = program.pairs.get(position + 1, position + 1)
        else:
            break
    return position


class VariableBindings:
    """The values of variables at the current position in a program."""

    def __init__(self, program: SourceProgram) -> None:
        """Initialize empty bindings."""
        self._program = program
        self._fields: dict[str, ChangesByField] = {}
        self._chains: dict[str, tuple[str, ...]] = {}
        self._texts: dict[str, deque[tuple[str, int]]] = {}

    @property
    def has_response_variables(self) -> bool:
        """True if a variable contains a response."""
        return bool(self._fields)

    def expand_chain(self, chain: tuple[str, ...]) -> tuple[str, ...]:
        """Return a chain, prefixed with the chain that was assigned to its first variable."""
        return (*self._chains.get(chain[0], ()), *chain)[-_MAX_CHAIN_WORDS:]

    def record_assigned_value(self, position: int) -> None:
        """Record the value assigned to a variable.

        `position` is the position of the assignment operator.
        """
        name = to_snake_case(self._program.tokens[position - 1].text)
        value = skip_keywords(self._program, position + 1)
        words = self._read_names(value)
        self._record_assigned_text(name, value)
        first = words[0] if words else ""
        self._store_binding(name, self._fields.get(first, {}), words)

    def discard_redeclared_value(self, position: int) -> None:
        """Discard the value of a variable that is declared again.

        `position` is the position of the declaration keyword, such as `let`.
        """
        self._texts.pop(to_snake_case(self._program.get_text(position + 1)), None)

    def _record_assigned_text(self, name: str, position: int) -> None:
        """Record an assigned string, also after a tag (endpoint`…`), `base +` or `fmt.Sprintf(`."""
        position = self._find_formatted_string(position)
        is_added = self._program.get_text(position + 1) == "+"
        position = next(
            (
                each
                for each in (position, position + 1 + is_added)
                if self._program.get_token_kind(each) == TEXT
            ),
            -1,
        )
        if position < 0:
            return
        text, _ = read_literal(self._program, position)
        line = self._program.tokens[position].line
        self._texts.setdefault(name, deque(maxlen=4)).append((text, line))

    def _find_formatted_string(self, position: int) -> int:
        """Return the position of a formatting function's first argument, or `position` itself."""
        function = position
        while self._program.get_text(function + 1) in _MEMBER_SIGNS:
            function += 2
        name = (
            to_snake_case(self._program.get_text(function))
            if self._program.get_token_kind(function) == NAME
            else ""
        )
        is_call = name in _FORMAT_FUNCTIONS and self._program.get_text(function + 1) == "("
        return function + 2 if is_call else position

    def _store_binding(self, name: str, fields: ChangesByField, words: Sequence[str]) -> None:
        if fields:
            self._fields[name] = fields
        else:
            self._fields.pop(name, None)
        if words and words[0] != name:
            self._chains[name] = self.expand_chain(tuple(words))
        elif not words:
            self._chains.pop(name, None)

    def _read_names(self, position: int) -> list[str]:
        """Return the names in an expression such as `project.releases.list(…)`."""
        words: list[str] = []
        while self._program.get_token_kind(position) == NAME and len(words) < _MAX_CHAIN_WORDS:
            words.append(to_snake_case(self._program.tokens[position].text))
            position += 1
            while self._program.get_text(position) in {"(", "["}:
                position = self._program.pairs.get(position, position) + 1
            if self._program.get_text(position) not in _MEMBER_SIGNS:
                break
            position += 1
        return words

    def record_loop_variable(self, position: int) -> Iterator[DetectedChange]:
        """Record the variable of a loop, and yield the fields that a comprehension reads.

        `position` is the position of `in` or `of`.
        """
        name = self._program.get_text(position - 1)
        words = self._read_names(skip_keywords(self._program, position + 1))
        if not name or not words:
            return
        self._store_binding(to_snake_case(name), self._fields.get(words[0], {}), words)
        yield from self._find_comprehension_fields(position, name)

    def _find_comprehension_fields(self, position: int, name: str) -> Iterator[DetectedChange]:
        """Yield the fields that a comprehension reads before its loop."""
        opening = self._program.around[position]
        if (
            opening < 0
            or to_snake_case(name) not in self._fields
            or self._program.get_text(position - 2) != "for"
        ):
            return
        for each in range(max(opening, position - _MAX_COMPREHENSION_TOKENS), position - 2):
            yield from self.find_accessed_fields(each)

    def record_callback_parameter(self, call: ProgramCall) -> None:
        """Record the parameter of a callback that is called with the items of a variable."""
        if call.chain[-1] not in _ITERATION_FUNCTIONS or call.chain[0] not in self._fields:
            return
        at = call.opening + 1
        while self._program.get_text(at) in {"(", "async", "function", "|", "{"}:
            at += 1
        if self._program.get_token_kind(at) == NAME:
            name = to_snake_case(self._program.tokens[at].text)
            self._store_binding(name, self._fields[call.chain[0]], call.chain)

    def record_call_result(
        self, call: ProgramCall, fields: ChangesByField
    ) -> Iterator[DetectedChange]:
        """Record the variable for the result of a call.

        Yield the affected fields that are read directly from the result.
        """
        before = call.start - 1
        while self._program.get_text(before) in {"await", "new", "(", "list"}:
            before -= 1
        holder = self._program.get_text(before - 1)
        if self._program.get_text(before) in {"=", ":=", "in", "of"} and holder:
            self._store_binding(to_snake_case(holder), fields, ())
            self._chains[to_snake_case(holder)] = self.expand_chain(call.chain)
            if self._program.get_text(before) in {"in", "of"}:
                yield from self._find_comprehension_fields(before, holder)
        if fields:
            yield from self._find_member_accesses(call.closing + 1, fields)

    def find_argument_texts(self, call: ProgramCall) -> Iterator[str]:
        """Yield the strings in variables that are passed to a call."""
        line = self._program.tokens[call.opening].line
        for at in range(call.opening + 1, min(call.closing, call.opening + 8)):
            if self._program.get_token_kind(at) != NAME or self._program.get_text(at + 1) not in {
                ",",
                ")",
                "",
            }:
                continue
            for text, begun in self._texts.get(to_snake_case(self._program.tokens[at].text), ()):
                if line - begun <= _ADDRESS_LIFETIME_LINES:
                    yield text

    def find_accessed_fields(self, position: int) -> Iterator[DetectedChange]:
        """Yield the fields that are read or set on the variable at a position."""
        name = self._program.get_text(position) if self._fields else ""
        fields = self._fields.get(to_snake_case(name)) if name else None
        if fields and self._program.get_text(position - 1) not in _MEMBER_SIGNS:
            yield from self._find_member_accesses(position + 1, fields)

    def _find_member_accesses(
        self, position: int, fields: ChangesByField
    ) -> Iterator[DetectedChange]:
        """Yield the affected fields among the members that are accessed after a value."""
        for _ in range(_MAX_ACCESS_STEPS):
            sign = self._program.get_text(position)
            if sign in _MEMBER_SIGNS:
                yield from self._find_member_change(position + 1, fields)
                position += 2
            elif sign in {"[", "("}:
                yield from self._find_member_change(position + 1, fields)
                position = self._program.pairs.get(position, position) + 1
            else:
                return

    def _find_member_change(
        self, position: int, fields: ChangesByField
    ) -> Iterator[DetectedChange]:
        if self._program.get_token_kind(position) not in {NAME, TEXT}:
            return
        token = self._program.tokens[position]
        change = fields.get(to_snake_case(token.text.lstrip(":")))
        is_managed = (
            self._program.get_text(position + 2) in _MANAGER_METHODS
            and self._program.get_text(position + 3) == "("
        )
        if change is not None and not is_managed:
            yield DetectedChange(change, token.line, f"The field {to_snake_case(token.text)}")
