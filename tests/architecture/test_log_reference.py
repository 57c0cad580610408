"""The tables of log events in the documents list the messages in the code."""

import ast
import re
from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_FILES = ("web", "domain", "blueprints", "models", "migrations", "app.py", "gunicorn.conf.py")
_LEVELS = {"exception": "error"} | {
    each: each for each in ("debug", "info", "warning", "error", "critical")
}
#: Name of gunicorn's own logger, which web processes use as `log`.
_GUNICORN = "gunicorn.error"
#: Placeholder for a message that another module composes; the second table describes it.
_COMPUTED = "(computed)"
_PLACEHOLDER = re.compile(r"%[sd]")
_EVENT = re.compile(r"[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*")


class Message(NamedTuple):
    """A log message; if several loggers log it, commas separate the loggers and the events."""

    logger: str
    level: str
    event: str
    text: str


def test_the_tables_list_exactly_the_log_messages_of_the_code() -> None:
    assert sorted(_written()) == sorted(set(_logged()))


def test_every_log_call_has_an_event_key() -> None:
    keys = [(each, key) for each in _logged() for key in each.event.split(", ")]
    assert [each for each, key in keys if not _EVENT.fullmatch(key)] == []


def test_an_event_key_stands_for_one_message() -> None:
    texts = {(each.event, each.text) for each in _logged()}
    assert len(texts) == len({event for event, _ in texts})


def test_every_message_is_a_sentence() -> None:
    texts = [each.text for each in _logged() if each.text != _COMPUTED]
    assert [text for text in texts if text[0].islower() or not text.endswith(".")] == []


def _written() -> list[Message]:
    text = (ROOT / "docs" / "log-events.md").read_text(encoding="utf-8")
    rows = (line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `"))
    cells = [[cell.strip().replace("`", "") for cell in row] for row in rows]
    return [
        *(Message(row[2], row[1], row[0], row[3]) for row in cells if len(row) == 6),
        *(Message(row[2], row[1], row[0], _COMPUTED) for row in cells if len(row) == 4),
    ]


def _logged() -> Iterator[Message]:
    paths = (ROOT / name for name in _FILES)
    for file in chain.from_iterable(p.rglob("*.py") if p.is_dir() else (p,) for p in paths):
        text = file.read_text(encoding="utf-8")
        if "log" in text:
            yield from _Module(ast.parse(text)).messages()


class _Module:
    """A module of the product, and the loggers and texts that its names refer to."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree, self._loggers = tree, _loggers_in(tree)
        #: Texts by attribute name; the same attribute in two classes has two texts.
        self._texts: dict[str, list[str]] = {}
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                    self._texts.setdefault(name, []).append(text)

    def messages(self) -> Iterator[Message]:
        for part in self._tree.body:
            # A class with its own logger does not use the logger of its module.
            own = _loggers_in(part) if isinstance(part, ast.ClassDef) else {}
            loggers = self._loggers | own
            for node in ast.walk(part):
                yield from self._messages_of(node, loggers)

    def _messages_of(self, node: ast.AST, loggers: dict[str, str]) -> Iterator[Message]:
        match node:
            case ast.Call(func=ast.Attribute(attr=level, value=logger), args=[said, *_]) if (
                level in _LEVELS and "log" in _last_name(logger)
            ):
                name = loggers.get(_last_name(logger), _GUNICORN)
                yield Message(name, _LEVELS[level], self._event(node), self._text(said))
            case ast.Dict() if record := _record(node):
                yield record

    def _text(self, said: ast.expr) -> str:
        found = self._strings(said)
        return _PLACEHOLDER.sub("…", found[0]) if len(found) == 1 else _COMPUTED

    def _event(self, call: ast.Call) -> str:
        extra = next((each.value for each in call.keywords if each.arg == "extra"), None)
        if not isinstance(extra, ast.Dict):
            return ""
        found = [
            value
            for key, value in zip(extra.keys, extra.values, strict=True)
            if isinstance(key, ast.Constant) and key.value == "event"
        ]
        return ", ".join(chain.from_iterable(map(self._strings, found)))

    def _strings(self, node: ast.expr) -> list[str]:
        """Return the possible texts of an expression, or an empty list if they are computed."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=parts):
                return ["".join(each) for each in product(*map(self._strings, parts))]
            case ast.FormattedValue(value=value):
                return self._strings(value)
            case ast.Name() | ast.Attribute():
                return self._texts.get(_last_name(node), [])
        return []


def _loggers_in(tree: ast.AST) -> dict[str, str]:
    """Return the loggers of a module by the names that they are assigned to."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Attribute(attr="getLogger"), args=[ast.Constant(value=str(logger))]
                ),
            ):
                # Two classes can have an attribute of the same name, so there are two loggers.
                found[name] = f"{found[name]}, {logger}" if name in found else logger
    return found


def _last_name(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def _record(node: ast.Dict) -> Message | None:
    """Return the message of a log record that is written as a literal."""
    found = {
        key.value: value.value
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
    }
    if {"name", "msg", "levelname"} - found.keys():
        return None
    level = str(found["levelname"]).lower()
    return Message(str(found["name"]), level, str(found.get("event", "")), str(found["msg"]))
