"""Changes of state are actions of the domain: faces check nothing and record nothing themselves.

Those in `tests/architecture/faces_that_act.txt` do so still. That list only becomes shorter: a file
that does so no longer has to be taken out.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

#: What only actions do (`domain/access/actions.py`), and what the marks of views share with them.
_OF_ACTIONS = frozenset(
    {"store_event", "stream_event", "prepare_event", "check_takes_changes", "check_feature"}
)
#: What each face goes through, and transfers of Git, which are a path of their own.
_SHARED = frozenset(
    {"web/access/decorators.py", "web/http/audit_events.py", "blueprints/git/http_backend.py"}
)
_FACES = ("blueprints", "forms", "web")
_NOT_YET = frozenset(
    Path(__file__).with_name("faces_that_act.txt").read_text(encoding="utf-8").split()
)


def test_faces_leave_checks_and_events_to_actions() -> None:
    found = {str(path) for root in _FACES for path in Path(root).rglob("*.py") if _acts(path)}
    assert found - _SHARED <= _NOT_YET
    assert found >= _NOT_YET, f"Take out of the list: {sorted(_NOT_YET - found)}"


def _acts(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    is_named = any(name in text for name in _OF_ACTIONS)  # to parse all takes seconds
    return is_named and not _OF_ACTIONS.isdisjoint(_called(ast.parse(text)))


def _called(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
