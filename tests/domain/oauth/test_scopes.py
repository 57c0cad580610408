"""Scopes of applications."""

import pytest

from domain.access.scopes import (
    SCOPES,
    SCOPES_BY_NAME,
    UnknownScopeError,
    describe_scopes,
    parse_scopes,
)


@pytest.mark.spec("A5")
@pytest.mark.rfc("rfc6749-3.3-a")
@pytest.mark.parametrize(
    ("text", "scopes"),
    [
        ("", ()),
        ("  ", ()),
        ("api", ("api",)),
        ("read_user api", ("api", "read_user")),
        (" read_user   read_user ", ("read_user",)),
    ],
)
def test_a_list_of_scopes_is_deduplicated_and_sorted(text: str, scopes: tuple[str, ...]) -> None:
    assert parse_scopes(text) == scopes


@pytest.mark.spec("F3")
@pytest.mark.parametrize("text", ["API", "api,read_user", "nonsense", "api nonsense", "api\x00"])
def test_an_unknown_scope_is_rejected_with_its_name(text: str) -> None:
    with pytest.raises(UnknownScopeError, match="unknown scope"):
        parse_scopes(text)


@pytest.mark.spec("A9")
def test_every_scope_has_a_title_and_a_description() -> None:
    for scope in SCOPES:
        assert scope.title[0].isupper()
        assert scope.description.endswith(".")
    assert len(SCOPES_BY_NAME) == len(SCOPES)


def test_newly_requested_scopes_are_marked() -> None:
    assert [
        (each.name, each.is_new) for each in describe_scopes(["read_user", "api"], new=["api"])
    ] == [
        ("api", True),
        ("read_user", False),
    ]
