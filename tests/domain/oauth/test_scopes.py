"""What applications may ask for."""

import pytest

from domain.access.scopes import BY_NAME, SCOPES, UnknownScopeError, parse_scopes, views


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
def test_a_list_is_read_each_once_and_in_one_order(text: str, scopes: tuple[str, ...]) -> None:
    assert parse_scopes(text) == scopes


@pytest.mark.spec("F3")
@pytest.mark.parametrize("text", ["API", "api,read_user", "nonsense", "api nonsense", "api\x00"])
def test_a_scope_that_nobody_knows_is_named(text: str) -> None:
    with pytest.raises(UnknownScopeError, match="unknown scope"):
        parse_scopes(text)


@pytest.mark.spec("A9")
def test_every_scope_can_be_said_in_words() -> None:
    for scope in SCOPES:
        assert scope.title[0].isupper()
        assert scope.description.endswith(".")
    assert len(BY_NAME) == len(SCOPES)


def test_what_is_asked_for_the_first_time_is_marked() -> None:
    assert [(each.name, each.is_new) for each in views(["read_user", "api"], new=["api"])] == [
        ("api", True),
        ("read_user", False),
    ]
