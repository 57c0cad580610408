"""Only actions of the domain check permissions and record events; interfaces do neither.

`tests/architecture/faces_that_act.txt` lists the exceptions. Files that are no exception any more
have to be removed from the list.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

#: Functions that only actions call (`domain/access/actions.py`), and functions that access
#: decorators of views also call.
_OF_ACTIONS = frozenset(
    {
        "store_event",
        "queue_streamed_event",
        "prepare_event_storage",
        "check_not_archived",
        "check_feature",
    }
)
#: Shared parts of the interfaces, and Git transfers, which have their own checks.
_SHARED = frozenset(
    {"web/access/decorators.py", "web/http/audit_event_source.py", "blueprints/git/http_backend.py"}
)
_FACES = ("blueprints", "forms", "web")
_NOT_YET = frozenset(
    Path(__file__).with_name("faces_that_act.txt").read_text(encoding="utf-8").split()
)


def test_interfaces_leave_checks_and_events_to_actions() -> None:
    found = {str(path) for root in _FACES for path in Path(root).rglob("*.py") if _acts(path)}
    assert found - _SHARED <= _NOT_YET
    assert found >= _NOT_YET, f"Take out of the list: {sorted(_NOT_YET - found)}"


def _acts(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    is_named = any(name in text for name in _OF_ACTIONS)  # Parsing all files would take seconds.
    return is_named and not _OF_ACTIONS.isdisjoint(_called(ast.parse(text)))


def _called(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
