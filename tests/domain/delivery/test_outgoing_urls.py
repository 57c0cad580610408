"""URLs of outgoing requests."""

import pytest

from domain.core.errors import InvalidError
from domain.delivery.outgoing.urls import parse_outgoing_url


@pytest.mark.parametrize(
    ("text", "authority", "target", "shown"),
    [
        ("https://Logs.example", "logs.example", "/", "https://logs.example/"),
        ("HTTPS://logs.example:443/a?k=1", "logs.example", "/a?k=1", "https://logs.example/a"),
        ("http://[::1]:8080/x", "[::1]:8080", "/x", "http://[::1]:8080/x"),
        ("http://10.0.0.1:80?q", "10.0.0.1", "/?q", "http://10.0.0.1/"),
    ],
)
def test_a_url_is_split_into_its_parts(text: str, authority: str, target: str, shown: str) -> None:
    url = parse_outgoing_url(text)
    assert (url.authority, url.target, url.redacted) == (authority, target, shown)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is missing"),
        ("logs.example", "must begin with https:// or http://"),
        ("ftp://logs.example/", "must begin with"),
        ("javascript:alert(1)", "must begin with"),
        ("https://", "invalid host name"),
        ("https://user:secret@logs.example/", "username or password"),
        ("https://logs.example\\@127.0.0.1/", "has an invalid character"),
        ("https://logs.example/#part", "fragment"),
        ("https://logs.example/ x", "has an invalid character"),
        ("https://logs.example/\r\nX: y", "has an invalid character"),
        ("https://löck.example/", "has an invalid character"),
        ("https://logs.example:99999/", "invalid host or port"),
        ("https://logs.example:0/", "invalid host or port"),
        ("https://[::1/", "invalid host or port"),
        ("https://-x.example/", "invalid host name"),
        ("https://logs.example/" + "x" * 2_000, "at most 2000 characters"),
    ],
)
def test_an_invalid_url_is_rejected_with_a_reason(text: str, words: str) -> None:
    with pytest.raises(InvalidError, match=words) as raised:
        parse_outgoing_url(text)
    assert raised.value.field == "url"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/services/T0123ABCD/B0456EFGH/Zq8sVt3Xk1LmNp7RwYbC", "/services/…/…/…"),
        ("/hooks/0b5a1d9e-2c3f-4a6b-8d7e-9f0a1b2c3d4e", "/hooks/…"),
        ("/hook/abcdefghijklmnopqrstuvwxyz", "/hook/…"),
        ("/.well-known/openid-configuration?x=1", "/.well-known/openid-configuration"),
        ("/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server"),
        ("/alerts/team-7/prod-eu1", "/alerts/team-7/prod-eu1"),
    ],
)
def test_likely_secrets_in_paths_are_hidden(path: str, shown: str) -> None:
    assert (
        parse_outgoing_url(f"https://bot.example{path}").redacted == f"https://bot.example{shown}"
    )
