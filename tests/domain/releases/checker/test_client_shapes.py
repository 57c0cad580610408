"""Clients in many languages: there are no false findings, and missed lines are known."""

import re
from pathlib import Path

import pytest

from domain.releases.changes import Certainty
from domain.releases.checker.text_checks import check_file
from tests.domain.releases.checker.client_shapes import SHAPES, Shape

DOCUMENT = Path(__file__).parents[4] / "docs" / "releases-checker.md"


@pytest.mark.parametrize("shape", SHAPES, ids=lambda each: each.name)
def test_only_breaking_lines_are_found(shape: Shape) -> None:
    found = check_file(shape.name, shape.content.encode()).findings
    expected = {line: change for line, change in shape.breaks.items() if line not in shape.missed}
    assert {each.line: each.change.id for each in found} == expected
    assert len(found) == len(expected)


def test_the_document_has_the_numbers_of_found_and_missed_lines() -> None:
    breaking = sum(len(each.breaks) for each in SHAPES)
    missed = sum(len(each.missed) for each in SHAPES)
    sentence = r"Of (\d+) breaking lines in (\d+) files, the checker missed (\d+)"
    said = re.search(sentence, DOCUMENT.read_text())
    assert said is not None
    assert tuple(map(int, said.groups())) == (breaking, len(SHAPES), missed)


@pytest.mark.parametrize(
    ("name", "content", "certainty"),
    [
        ("a.sh", "curl https://gate.example/api/v4/users?page=2", "sure"),
        ("a.py", "import gitlab\ngl.users.list(page=2)", "sure"),
        # Only a name without a call, and a call whose parameters are known at run time.
        ("a.py", "project.operations_access_level = 'private'", "possible"),
        (
            "access.log",
            '::1 - - [10/Oct/2026:13:55:36 +0000] "POST /api/v4/runners HTTP/1.1" 201 1',
            "possible",
        ),
        ("a.go", 'package gitlab\nNewRequest(http.MethodPost, "runners", options)', "possible"),
        # Some of these requests fail, or have another meaning.
        ("a.graphql", "{ runner(id: 1) { projects { nodes { id } } } }", "possible"),
        # A name and its call on one line.
        (
            "a.http",
            'PUT /api/v4/projects/7 {"operations_access_level": "private"}',
            "sure",
        ),
    ],
)
def test_a_finding_has_a_certainty(name: str, content: str, certainty: str) -> None:
    [finding] = check_file(name, content.encode()).findings
    assert finding.certainty is Certainty(certainty)
