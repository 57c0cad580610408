"""The key of an integration in the Authorization header of a request."""

import pytest

from domain.alerts.receiving.receivers import WrongKeyError, parse_authorization_key
from tests.support.alerts.senders import basic


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    "header",
    [
        *("Bearer KEY", "bearer KEY", "BEARER  KEY", "Bearer KEY "),
        *("Basic OktFWQ==", "BASIC  OktFWQ==", basic("", "KEY")),
    ],
)
def test_a_key_is_a_bearer_token_or_a_password_without_a_user(header: str) -> None:
    assert parse_authorization_key(header) == "KEY"


@pytest.mark.spec("I2")
def test_a_password_may_have_a_colon() -> None:
    assert parse_authorization_key(basic("", "a:b")) == "a:b"


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    "header",
    [
        *(None, "", "Bearer", "Bearer ", "KEY", "Token KEY", "\xe9 KEY"),
        *("Basic", "Basic ", "Basic !!!", "Basic KEY", "Basic bm9jb2xvbg==", "Basic /////w=="),
        *(basic("alice", "KEY"), basic("KEY", ""), basic("", "")),
    ],
)
def test_other_headers_contain_no_key(header: str | None) -> None:
    with pytest.raises(WrongKeyError):
        parse_authorization_key(header)
