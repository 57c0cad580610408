"""Which variables of a program hold what a request returned, or an address."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from domain.releases.changes import Change
from domain.releases.checker.calls import Call, Program, literal, unskipped
from domain.releases.checker.findings import Found
from domain.releases.checker.names import snake
from domain.releases.checker.tokens import NAME, TEXT

_DOTS = frozenset({".", "?.", "::", "->"})
#: Functions that call another one with each item.
_EACH = frozenset(
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
#: What python-gitlab's managers are asked to do: `package.pipelines.list()` is no field.
_MANAGED = frozenset({"list", "get", "create", "delete", "update"})
#: An address is what a variable holds for so many lines.
_LINES = 40
_LONGEST_ACCESS = 12
_LONGEST_COMPREHENSION = 120
_LONGEST_WORDS = 12
Fields = Mapping[str, Change]


class Bindings:
    """What variables hold, as far as the program was read."""

    def __init__(self, program: Program) -> None:
        """Begin with nothing."""
        self._program = program
        self._fields: dict[str, Fields] = {}
        self._chains: dict[str, tuple[str, ...]] = {}
        self._texts: dict[str, deque[tuple[str, int]]] = {}

    @property
    def has_fields(self) -> bool:
        """Return whether a variable holds what a request returned."""
        return bool(self._fields)

    def expanded(self, chain: tuple[str, ...]) -> tuple[str, ...]:
        """Return a chain with what its first variable came from before it."""
        return (*self._chains.get(chain[0], ()), *chain)[-_LONGEST_WORDS:]

    def assign(self, at: int) -> None:
        """Note what the assignment at the position of its sign gives to a variable."""
        name = snake(self._program.tokens[at - 1].text)
        value = unskipped(self._program, at + 1)
        words = self._words(value)
        self._note_text(name, value)
        first = words[0] if words else ""
        self._keep(name, self._fields.get(first, {}), words)

    def declare(self, at: int) -> None:
        """Forget what a variable held, at the position of the `let` of a new one."""
        self._texts.pop(snake(self._program.text(at + 1)), None)

    def _note_text(self, name: str, at: int) -> None:
        """Note a text, also one behind a tag (endpoint`…`) or behind `base +`."""
        is_added = self._program.text(at + 1) == "+"
        at = next(
            (each for each in (at, at + 1 + is_added) if self._program.kind(each) == TEXT), -1
        )
        if at < 0:
            return
        text, _ = literal(self._program, at)
        line = self._program.tokens[at].line
        self._texts.setdefault(name, deque(maxlen=4)).append((text, line))

    def _keep(self, name: str, fields: Fields, words: Sequence[str]) -> None:
        if fields:
            self._fields[name] = fields
        else:
            self._fields.pop(name, None)
        if words and words[0] != name:
            self._chains[name] = self.expanded(tuple(words))
        elif not words:
            self._chains.pop(name, None)

    def _words(self, at: int) -> list[str]:
        """Return the words of a value such as `project.releases.list(…)`."""
        words: list[str] = []
        while self._program.kind(at) == NAME and len(words) < _LONGEST_WORDS:
            words.append(snake(self._program.tokens[at].text))
            at += 1
            while self._program.text(at) in {"(", "["}:
                at = self._program.pairs.get(at, at) + 1
            if self._program.text(at) not in _DOTS:
                break
            at += 1
        return words

    def loop(self, at: int) -> Iterator[Found]:
        """Note the variable of a loop at the position of its `in` or `of`."""
        name = self._program.text(at - 1)
        words = self._words(unskipped(self._program, at + 1))
        if not name or not words:
            return
        self._keep(snake(name), self._fields.get(words[0], {}), words)
        yield from self._comprehension(at, name)

    def _comprehension(self, at: int, name: str) -> Iterator[Found]:
        """Yield the fields in what stands before a loop inside of brackets."""
        opening = self._program.around[at]
        if opening < 0 or snake(name) not in self._fields or self._program.text(at - 2) != "for":
            return
        for each in range(max(opening, at - _LONGEST_COMPREHENSION), at - 2):
            yield from self.fields_after(each)

    def callback(self, call: Call) -> None:
        """Note the argument of a function that is called with what a variable holds."""
        if call.chain[-1] not in _EACH or call.chain[0] not in self._fields:
            return
        at = call.opening + 1
        while self._program.text(at) in {"(", "async", "function", "|", "{"}:
            at += 1
        if self._program.kind(at) == NAME:
            name = snake(self._program.tokens[at].text)
            self._keep(name, self._fields[call.chain[0]], call.chain)

    def bind(self, call: Call, fields: Fields) -> Iterator[Found]:
        """Note where the result of a call goes; yield the fields that are read at once."""
        before = call.start - 1
        while self._program.text(before) in {"await", "new", "(", "list"}:
            before -= 1
        holder = self._program.text(before - 1)
        if self._program.text(before) in {"=", ":=", "in", "of"} and holder:
            self._keep(snake(holder), fields, ())
            self._chains[snake(holder)] = self.expanded(call.chain)
            if self._program.text(before) in {"in", "of"}:
                yield from self._comprehension(before, holder)
        if fields:
            yield from self._accessed(call.closing + 1, fields)

    def texts_in(self, call: Call) -> Iterator[str]:
        """Yield the texts of variables that are handed to a call, each once."""
        line = self._program.tokens[call.opening].line
        for at in range(call.opening + 1, min(call.closing, call.opening + 8)):
            if self._program.kind(at) != NAME or self._program.text(at + 1) not in {",", ")", ""}:
                continue
            for text, begun in self._texts.get(snake(self._program.tokens[at].text), ()):
                if line - begun <= _LINES:
                    yield text

    def fields_after(self, at: int) -> Iterator[Found]:
        """Yield the fields that are read or set of the variable at a position."""
        name = self._program.text(at) if self._fields else ""
        fields = self._fields.get(snake(name)) if name else None
        if fields and self._program.text(at - 1) not in _DOTS:
            yield from self._accessed(at + 1, fields)

    def _accessed(self, at: int, fields: Fields) -> Iterator[Found]:
        """Yield the fields among the members that follow a value."""
        for _ in range(_LONGEST_ACCESS):
            sign = self._program.text(at)
            if sign in _DOTS:
                yield from self._member(at + 1, fields)
                at += 2
            elif sign in {"[", "("}:
                yield from self._member(at + 1, fields)
                at = self._program.pairs.get(at, at) + 1
            else:
                return

    def _member(self, at: int, fields: Fields) -> Iterator[Found]:
        if self._program.kind(at) not in {NAME, TEXT}:
            return
        token = self._program.tokens[at]
        change = fields.get(snake(token.text.lstrip(":")))
        is_managed = self._program.text(at + 2) in _MANAGED and self._program.text(at + 3) == "("
        if change is not None and not is_managed:
            yield Found(change, token.line, f"The field {snake(token.text)}")
