"""Validation of redirect URIs, and comparison with registered ones."""

import pytest

from domain.oauth.clients.redirect_uris import (
    RedirectDestination,
    add_query_parameters,
    check_redirect_uri,
    describe_redirect_destination,
    is_insecure_redirect_uri,
    is_redirect_uri_registered,
)

REGISTERED = [
    "https://client.example/callback",
    "https://client.example/with?tenant=1",
    "https://client.example:8443/port",
    "http://127.0.0.1/callback",
    "http://[::1]:9000/callback",
    "http://localhost/callback",
    "com.example.app:/callback",
    "com.example.app:///three",
    "https://Upper.Example/Case/%7euser/%C3%A9",
]

ATTACKS = (
    # Case
    "https://CLIENT.example/callback",
    "HTTPS://client.example/callback",
    "https://client.example/Callback",
    # Slashes and dots
    "https://client.example/callback/",
    "https://client.example//callback",
    "https://client.example/./callback",
    "https://client.example/x/../callback",
    "https://client.example/callback/../../evil",
    "https://client.example/callback/..;/evil",
    # Encoded characters
    "https://client.example/%63allback",
    "https://client.example/callback%00",
    "https://client.example/callback%2f..",
    "https://client.example/callback\x00",
    "https://client.example/callback ",
    " https://client.example/callback",
    "https://client.example/callback\r\nX: y",
    "https://client.example\t/callback",
    # User information
    "https://client.example@evil.example/callback",
    "https://client.example:443@evil.example/callback",
    "https://evil.example\\@client.example/callback",
    "https://user@client.example/callback",
    "http://127.0.0.1:8080@evil.example/callback",
    "http://127.0.0.1@evil.example/callback",
    # Backslashes
    "https://client.example\\callback",
    "https:\\\\client.example/callback",
    "https://client.example/callback\\..\\evil",
    # Hosts that look similar
    "https://client.example.evil.example/callback",
    "https://evil.example/client.example/callback",
    "https://evilclient.example/callback",
    "https://client.example./callback",
    "https://cl\u0131ent.example/callback",
    "//client.example/callback",
    "/callback",
    # Fragments and parameters
    "https://client.example/callback#",
    "https://client.example/callback#fragment",
    "https://client.example/callback?",
    "https://client.example/callback?x=y",
    "https://client.example/callback;x",
    "https://client.example/with?tenant=2",
    "https://client.example/with?tenant=1&tenant=2",
    "https://client.example/with",
    # Other schemes
    "http://client.example/callback",
    "javascript:alert(1)",
    "data:text/html,x",
    # Ports: only ports of loopback addresses may vary
    "https://client.example:443/callback",
    "https://client.example:8444/port",
    "https://client.example/port",
    "http://localhost:8080/callback",
    "https://127.0.0.1/callback",
    "http://127.0.0.1:8080/other",
    "http://127.0.0.1:8080/callback?x=y",
    "http://127.0.0.1:8080/callback?",
    "http://127.0.0.1:8080/callback#",
    "http://127.0.0.1:8080/callback#fragment",
    "HTTP://127.0.0.1:8080/callback",
    "http://127.0.0.1:/callback",
    "http://127.0.0.1:99999/callback",
    "http://127.0.0.1:8o80/callback",
    "http://127.0.0.1:-1/callback",
    "http://127.0.0.1:٨٠/callback",
    "http://127.0.0.2:8080/callback",
    "http://127.1:8080/callback",
    "http://2130706433:8080/callback",
    "http://127.0.0.1.evil.example:8080/callback",
    "http://127.0.0.1:8080.evil.example/callback",
    "http://127.0.0.1:8080\\@evil.example/callback",
    "http://[::2]:9000/callback",
    "http://[::1%25lo]:9000/callback",
    "http://[0:0:0:0:0:0:0:1]:9000/callback",
    "http://[::1].evil.example:9000/callback",
    "http://[::1/callback",
    # Private-use schemes, which have no ports and no hosts
    "com.example.app://callback",
    "com.example.app:/callback/",
    "COM.example.app:/callback",
)


@pytest.mark.spec("A4")
@pytest.mark.rfc("rfc8252-8.4-b", "rfc9700-2.1-a")
@pytest.mark.parametrize("uri", ATTACKS, ids=range(len(ATTACKS)))
def test_uris_that_only_look_like_a_registered_one_are_rejected(uri: str) -> None:
    assert not is_redirect_uri_registered(uri, REGISTERED)


@pytest.mark.spec("A4")
@pytest.mark.rfc("rfc8252-7.3-a")
@pytest.mark.parametrize("uri", REGISTERED)
def test_a_registered_uri_is_registered(uri: str) -> None:
    check_redirect_uri(uri)
    assert is_redirect_uri_registered(uri, REGISTERED)


@pytest.mark.spec("A8")
@pytest.mark.rfc("rfc8252-7.1-a")
@pytest.mark.parametrize(
    "uri",
    [
        "https://client.example",
        "https://client.example./callback",
        "https://under_score.example/callback",
        "https://client.example/callback?tenant=1;x='2'&y=(z)",
        "http://client.example/callback",
        "http://192.0.2.7:8080/callback",
        "https://[2001:db8::7]/callback",
        "com.example.app:/callback",
        "com.example.app://callback/path",
        "urn:ietf:wg:oauth:2.0:oob",
        "myapp:/cb",
        "myapp://cb",
        "vscode://vendor.extension/callback",
        "cursor://anysphere.cursor-retrieval/oauth/callback",
    ],
)
def test_valid_redirect_uris_can_be_registered(uri: str) -> None:
    check_redirect_uri(uri)


@pytest.mark.rfc("rfc6749-3.1.2-a", "rfc6749-3.1.2.2-b", "rfc9207-2.1-a")
@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("", "scheme"),
        ("client.example/callback", "scheme"),
        ("//client.example/callback", "scheme"),
        ("localhost:8080/callback", "localhost"),
        ("javascript:alert(1)", "forbidden"),
        ("JavaScript:alert(1)", "forbidden"),
        ("data:text/html,x", "forbidden"),
        ("vbscript:x", "forbidden"),
        ("file:///etc/passwd", "forbidden"),
        ("filesystem:https://client.example/temporary/x", "forbidden"),
        ("view-source:https://client.example/cb", "forbidden"),
        ("View-Source:https://client.example/cb", "forbidden"),
        ("chrome://settings/", "forbidden"),
        ("jar:https://client.example/x.jar!/", "forbidden"),
        ("feed:https://client.example/cb", "forbidden"),
        ("mailto:a@client.example", "forbidden"),
        ("tel:+4930123", "forbidden"),
        ("sms:+4930123", "forbidden"),
        ("intent://cb#Intent;scheme=https;end", "forbidden"),
        ("intent://cb", "forbidden"),
        ("blob:https://client.example/x", "forbidden"),
        ("about:blank", "forbidden"),
        ("ws://client.example/cb", "forbidden"),
        ("wss://client.example/cb", "forbidden"),
        ("ftp://client.example/cb", "forbidden"),
        ("ms-msdt:/id", "forbidden"),
        ("search-ms:query", "forbidden"),
        ("https://", "host"),
        ("https:///callback", "host"),
        ("https://:8080/callback", "host"),
        ("https://a..b/callback", "host"),
        ("https://client.example:x/callback", "URI"),
        ("https://client.example:99999/callback", "URI"),
        ("https://[::1/callback", "URI"),
        # Newer versions of Python reject it before the host is checked.
        ("https://[::1].evil.example/callback", "host|is not a URI"),
        ("https://client.example;sandbox/callback", "host"),
        ("https://client.example,default-src/callback", "host"),
        ("https://client.example'/callback", "host"),
        ("https://*.example/callback", "host"),
        ("https://-a.example/callback", "host"),
        ("com.example.app://a;b/callback", "host"),
        (f"https://{'a' * 64}.example/callback", "host"),
        ("https://user@client.example/callback", "password"),
        ("https://user:word@client.example/callback", "password"),
        ("https://client.example/callback#", "fragment"),
        ("https://client.example/callback#here", "fragment"),
        ("https://client.example/callback?code=1", "parameter"),
        ("https://client.example/callback?x=1&state", "parameter"),
        ("https://client.example/callback?iss=", "parameter"),
        ("https://client.example/callback?%65rror=1", "parameter"),
        ("https://client.example/call back", "characters"),
        ("https://client.example/callback\n", "characters"),
        ("https://client.example\\callback", "characters"),
        ("https://client.example/\x00", "characters"),
        ("https://caf\u00e9.example/callback", "characters"),
        ("https://client.example/<script>", "characters"),
        ("com.example.app:", "a host or a path"),
        (f"https://client.example/{'a' * 2000}", "longer"),
    ],
)
def test_invalid_redirect_uris_are_rejected_with_a_reason(uri: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_redirect_uri(uri)


@pytest.mark.parametrize(
    ("uri", "is_so"),
    [
        ("http://client.example/", True),
        ("http://192.0.2.7/", True),
        ("https://client.example/", False),
        ("http://127.0.0.1:8080/", False),
        ("http://[::1]/", False),
        ("http://localhost:3000/", False),
        ("com.example.app:/callback", False),
        ("http://localhost.evil.example/", True),
    ],
)
def test_only_http_across_a_network_is_insecure(uri: str, is_so: bool) -> None:  # noqa: FBT001 - a column of the table
    assert is_insecure_redirect_uri(uri) is is_so


@pytest.mark.spec("A2")
@pytest.mark.rfc("rfc6749-3.1.2-b")
@pytest.mark.parametrize(
    ("uri", "result"),
    [
        ("https://a.example/cb", "https://a.example/cb?code=x+y%26"),
        ("https://a.example/cb?", "https://a.example/cb?code=x+y%26"),
        ("https://a.example/cb?t=1", "https://a.example/cb?t=1&code=x+y%26"),
        ("https://a.example/cb?t=1?", "https://a.example/cb?t=1?&code=x+y%26"),
        ("com.example.app:/cb", "com.example.app:/cb?code=x+y%26"),
    ],
)
def test_response_parameters_are_added_without_other_changes(uri: str, result: str) -> None:
    assert add_query_parameters(uri, [("code", "x y&")]) == result


@pytest.mark.spec("A9")
@pytest.mark.parametrize(
    ("uri", "destination"),
    [
        (
            "https://a.example:8443/cb",
            RedirectDestination(
                words="a.example:8443",
                is_insecure=False,
            ),
        ),
        (
            "http://127.0.0.1:8400/cb",
            RedirectDestination(
                words="this computer (127.0.0.1:8400)",
                is_insecure=False,
            ),
        ),
        (
            "http://a.example/cb",
            RedirectDestination(words="a.example", is_insecure=True),
        ),
        (
            "com.example.app:/cb",
            RedirectDestination(
                words="the app \u201ccom.example.app:\u201d",
                is_insecure=False,
            ),
        ),
    ],
)
def test_the_destination_of_a_redirect_uri(uri: str, destination: RedirectDestination) -> None:
    assert describe_redirect_destination(uri) == destination
