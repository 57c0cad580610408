"""In which format errors come: as the view says, and without a view as others near it."""

import pytest
import requests

from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

PAGE, MESSAGE, OAUTH, TEXT = "a page", "a message", "an OAuth error", "a sentence"
#: Methods and URLs that fail, most of them because no view takes both.
ERRORS = (
    ("GET", "/there/is.nothing/-/here", PAGE),
    ("PUT", "/users/sign_in", PAGE),
    ("POST", "/users/sign_in", PAGE),  # without the token of the form
    ("POST", "/users/sign_in/passkey.json", MESSAGE),
    ("GET", "/users/sign_in/passkey.json", MESSAGE),
    ("GET", "/acme/shop.json", MESSAGE),
    ("POST", "/acme/shop/alerts/notify.json", MESSAGE),
    ("GET", "/acme/shop/alerts/notify.json", MESSAGE),
    ("POST", "/acme/shop/alerts/mistyped.json", MESSAGE),
    ("GET", "/api/v4/user", MESSAGE),
    ("GET", "/api/v4/mistyped", MESSAGE),
    ("PATCH", "/api/v4/user", MESSAGE),
    ("GET", "/api/v3/user", MESSAGE),
    ("GET", "/.well-known/openid-configuration/of/others", MESSAGE),
    ("GET", "/.well-known/mistyped", MESSAGE),
    ("POST", "/oauth/discovery/keys", MESSAGE),
    ("GET", "/oauth/discovery/mistyped", MESSAGE),
    ("GET", "/-/jwks/", MESSAGE),
    ("POST", "/oauth/token", OAUTH),
    ("PUT", "/oauth/token", OAUTH),
    ("GET", "/oauth/token/", OAUTH),
    ("GET", "/oauth/token/mistyped", OAUTH),
    ("GET", "/oauth/token/info", OAUTH),
    ("GET", "/oauth/userinfo", OAUTH),
    ("POST", "/oauth/register/someone", OAUTH),
    ("POST", "/oauth/introspect", OAUTH),
    ("GET", "/oauth/authorize", PAGE),
    ("PUT", "/oauth/authorize", PAGE),
    ("GET", "/oauth/mistyped", PAGE),
    ("POST", "/-/pictures/A-1.svg", PAGE),
    ("POST", "/healthz", PAGE),
    ("POST", "/acme/shop.git/info/refs", TEXT),
)


def format_of(answer: requests.Response) -> str:
    if answer.headers["Content-Type"].startswith("text/html"):
        return PAGE
    if answer.headers["Content-Type"].startswith("text/plain"):
        return TEXT
    body = answer.json()
    return MESSAGE if "message" in body else OAUTH if "error_uri" in body else str(body)


@pytest.mark.parametrize(("method", "path", "expected"), ERRORS)
def test_an_error_comes_in_the_format_of_its_endpoint(
    gatebell: LiveGatebell, method: str, path: str, expected: str
) -> None:
    answer = machine(gatebell).request(method, gatebell.url + path, allow_redirects=False)
    assert answer.status_code in {400, 401, 404, 405}
    assert format_of(answer) == expected
