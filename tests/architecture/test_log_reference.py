"""The table of log messages in the documents lists what the code logs."""

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_FILES = ("web", "domain", "blueprints", "models", "migrations", "app.py", "gunicorn.conf.py")
_LEVELS = {"exception": "error"} | {
    each: each for each in ("debug", "info", "warning", "error", "critical")
}
#: Loggers of this name are gunicorn's own, which the web processes have as `log`.
_GUNICORN = "gunicorn.error"
#: Functions that log their first argument as a warning.
_WRAPPERS = {"_known": "warning"}
#: Where sentences are logged that other modules write; the page describes them in a list.
_COMPUTED = {
    ("gunicorn.conf.py", "sentence"),
    ("web/admin/instance_state.py", "unknown"),  # the argument of a wrapper
    ("web/database/clocks.py", "in_words(lead_ms)"),
    ("web/database/start_checks.py", "_not_migrated(settings)"),
    ("web/database/start_checks.py", "str(error)"),
    ("web/server/tls.py", "warning"),
}
_PLACEHOLDER = re.compile(r"%[sd]")


class Message(NamedTuple):
    """A log message: several loggers are separated by commas."""

    logger: str
    level: str
    text: str


def test_every_log_message_is_in_the_table_and_the_other_way_round() -> None:
    assert sorted(_written()) == sorted({each for each in _logged() if isinstance(each, Message)})


def test_sentences_that_are_computed_are_known() -> None:
    assert {each for each in _logged() if not isinstance(each, Message)} == _COMPUTED


def _written() -> list[Message]:
    text = (ROOT / "docs" / "log-events.md").read_text(encoding="utf-8")
    rows = (line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `"))
    cells = ([cell.strip().replace("`", "") for cell in row] for row in rows)
    return [Message(*row[:3]) for row in cells if row[1] in _LEVELS]


def _logged() -> Iterator[Message | tuple[str, str]]:
    paths = (ROOT / name for name in _FILES)
    for file in chain.from_iterable(p.rglob("*.py") if p.is_dir() else (p,) for p in paths):
        text = file.read_text(encoding="utf-8")
        if "log" in text:
            yield from _Module(file.relative_to(ROOT).as_posix(), ast.parse(text)).messages()


class _Module:
    """A module of the product, with the loggers and texts that its names stand for."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self._path, self._tree = path, tree
        self._texts: dict[str, str] = {}
        self._loggers: dict[str, str] = {}
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                    self._texts[name] = text
                case ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.Call(
                        func=ast.Attribute(attr="getLogger"),
                        args=[ast.Constant(value=str(logger))],
                    ),
                ):
                    # A class attribute of the same name in two classes means two loggers.
                    known = self._loggers.get(name)
                    self._loggers[name] = f"{known}, {logger}" if known else logger

    def messages(self) -> Iterator[Message | tuple[str, str]]:
        for node in ast.walk(self._tree):
            match node:
                case ast.Call(func=ast.Attribute(attr=level, value=logger), args=[said, *_]) if (
                    level in _LEVELS and "log" in ast.unparse(logger).rpartition(".")[2]
                ):
                    yield self._message(self._logger(logger), _LEVELS[level], said)
                case ast.Call(func=ast.Name(id=name), args=[said, *_]) if name in _WRAPPERS:
                    given = {each.arg: each.value for each in node.keywords}
                    logger = given.get("log", ast.Name(id="_log"))
                    yield self._message(self._logger(logger), _WRAPPERS[name], said)
                case ast.Dict() if record := _record(node):
                    yield record

    def _logger(self, node: ast.expr) -> str:
        return self._loggers.get(ast.unparse(node).rpartition(".")[2], _GUNICORN)

    def _message(self, logger: str, level: str, said: ast.expr) -> Message | tuple[str, str]:
        text = said.value if isinstance(said, ast.Constant) else self._texts.get(ast.unparse(said))
        if not isinstance(text, str):
            return self._path, ast.unparse(said)
        return Message(logger, level, _PLACEHOLDER.sub("…", text))


def _record(node: ast.Dict) -> Message | None:
    """Return the message of a record that is made by hand."""
    found = {
        key.value: value.value
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
    }
    if {"name", "msg", "levelname"} - found.keys():
        return None
    return Message(str(found["name"]), str(found["levelname"]).lower(), str(found["msg"]))
