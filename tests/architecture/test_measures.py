"""Tests the measures of a checkout that is small enough to count by hand."""

import subprocess
from pathlib import Path

import pytest

from tests.architecture import measures
from tests.architecture.measures import Checkout, Field

FILES = {
    "domain/paging/silences/actions.py": "record_event(1)\ncheck_feature(project)\n",
    "domain/oauth/grants/code.py": "record_event(2)\n",
    "domain/projects/shares.py": (
        '@action("projects.share")\n'
        "def share_project(work, project):\n"
        "    check_role(project, GUEST)\n"
        "check_role(project, OWNER)\n"
    ),
    "web/api/silences.py": (
        '"""The comment."""\n'
        "# comment\n"
        "comment = form.comment\n"
        'record_event(3, field="comment")\n'
        "comments = is_http = kind is IntegrationType.HTTP\n"
    ),
    "domain/alerts/integration_type.py": "is_http = kind is IntegrationType.HTTP\n",
    "domain/alerts/formats/http.py": "is_http = kind is HTTP\n",
    "domain/hooks.py": "is_http = kind is HTTP\n",
    "templates/silences/new.html": "<p>{{ silence.comment }}\n",
    "models/comment.py": "comment = 1\n",
    "tests/test_silences.py": "check_feature(project)\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    begin = ("git", "init", "--quiet")
    subprocess.run(begin, cwd=tmp_path, check=True)
    return Checkout(tmp_path)


def test_lines_of_the_product_and_of_tests_are_counted_separately(checkout: Checkout) -> None:
    assert checkout.lines(*measures.PRODUCT) == 16
    assert checkout.lines("tests") == 1


def test_lines_that_name_a_field_are_counted(checkout: Checkout) -> None:
    found = measures.lines_of_field(checkout, Field("comment", "silence"))
    assert found == {"templates/silences/new.html": 1, "web/api/silences.py": 2}


def test_actions_and_hot_paths_may_record_events(checkout: Checkout) -> None:
    found = measures.calls_outside(checkout, {"record_event"}, measures.HOT_PATHS)
    assert found == ["web/api/silences.py:4"]
    assert measures.calls_outside(checkout, measures.STATE_CHECKS, measures.MARKS) == []


def test_a_marked_function_counts_as_an_action_in_any_module(checkout: Checkout) -> None:
    found = measures.calls_outside(checkout, measures.PERMISSION_CHECKS, measures.MARKS)
    assert found == ["domain/projects/shares.py:4"]


def test_the_registry_of_formats_may_compare_types(checkout: Checkout) -> None:
    assert measures.comparisons_of_types(checkout) == ["domain/hooks.py:1", "web/api/silences.py:5"]


def test_files_are_found_by_their_subject(checkout: Checkout) -> None:
    assert measures.files_of_silences(checkout) == [
        "domain/paging/silences/actions.py",
        "templates/silences/new.html",
        "web/api/silences.py",
    ]


def test_hot_paths_and_marks_exist() -> None:
    named = (*measures.HOT_PATHS, *measures.MARKS)
    missing = [name for name in named if not (measures.ROOT / name).exists()]
    assert missing == []
