"""Writes build/docs/statements.md: the tests of each statement in docs/evidence/statements.md.

Tests name statements with `@pytest.mark.spec("A3", …)` on a function, a class or, as `pytestmark`,
a file. They are read, not run.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from typing_extensions import TypeIs

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"\| (?P<id>[A-Z][0-9]+) \| (?P<text>.*) \|")
_HEADING = re.compile(r"## (?P<title>[A-Z]\. .*)")

_INTRODUCTION = """\
# Tests of each statement

`make docs` generates this page from the marks of the tests. {shown} of {all}
[statements](../../docs/evidence/statements.md) have a test.
"""


class Statement(NamedTuple):
    """A statement of the specification."""

    id: str
    text: str
    section: str


def statements() -> list[Statement]:
    """Return all statements in their order."""
    found, section = [], ""
    for line in (
        (ROOT / "docs" / "evidence" / "statements.md").read_text(encoding="utf-8").splitlines()
    ):
        if heading := _HEADING.fullmatch(line):
            section = heading["title"]
        elif row := _ROW.fullmatch(line):
            found.append(Statement(row["id"], row["text"], section))
    return found


@cache
def marks(mark: str = "spec", tests: Path = ROOT / "tests") -> dict[str, list[str]]:
    """Return the tests by the ids in their marks of this name."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in sorted(tests.rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if f".{mark}(" not in text:
            continue  # Parsing it would take most of the time.
        where = file.relative_to(tests.parent).as_posix()
        for name, identifier in _marks_in(ast.parse(text), mark):
            found[identifier].append(f"{where}{name}")
    return dict(found)


def document(known: Sequence[Statement], shown: Mapping[str, Sequence[str]]) -> str:
    """Return the table of statements with the names of their tests."""
    count = sum(each.id in shown for each in known)
    introduction = _INTRODUCTION.format(shown=count, all=len(known))
    return introduction + "".join(f"{line}\n" for line in _rows(known, shown))


def _rows(known: Sequence[Statement], shown: Mapping[str, Sequence[str]]) -> Iterator[str]:
    section = ""
    for each in known:
        if each.section != section:
            section = each.section
            yield from ("", f"## {section}", "", "| id | statement | tests |", "|---|---|---|")
        tests = "<br>".join(f"`{test}`" for test in shown.get(each.id, ())) or "—"
        yield f"| {each.id} | {each.text} | {tests} |"


def _marks_in(tree: ast.AST, mark: str, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield each id in a mark below the node, with the name of the marked function or class."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from _marks_in(child, mark, f"{name}::{child.name}")
        elif _is_mark(child, mark):
            for argument in child.args:
                yield name, str(ast.literal_eval(argument))
        else:
            yield from _marks_in(child, mark, name)


def _is_mark(node: ast.AST, mark: str) -> TypeIs[ast.Call]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr == mark and ast.unparse(node.func) == f"pytest.mark.{mark}"


def main() -> None:
    """Print the document, or, with --missing, the statements without a test."""
    known, shown = statements(), marks()
    if "--missing" not in sys.argv:
        sys.stdout.write(document(known, shown))
        return
    missing = [each for each in known if each.id not in shown]
    sys.stdout.writelines(f"{each.id:4} {each.text}\n" for each in missing)
    sys.stdout.write(f"{len(missing)} of {len(known)} statements have no test.\n")


if __name__ == "__main__":
    main()
