"""Tests of the declarations of each grant."""

from pathlib import Path

import pytest

from domain.oauth.applications.rejected_requests import REASONS_BY_NAME
from domain.oauth.grants.registry import GRANTS, GRANTS_BY_TYPE

_DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("grant_type", GRANTS_BY_TYPE)
def test_documents_name_every_grant(grant_type: str) -> None:
    pages = (each.read_text() for each in _DOCS.rglob("*.md") if each.parent.name != "adr")
    assert any(grant_type in text for text in pages)


def test_a_reason_is_declared_once() -> None:
    declared = [reason for grant in GRANTS for reason in grant.REASONS]
    assert all(REASONS_BY_NAME[reason.name] is reason for reason in declared)
