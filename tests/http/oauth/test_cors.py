"""CORS: endpoints that scripts of other origins may use, and endpoints that they may not."""

import pytest
import requests

from tests.support.accounts.people import alice, signed_in
from tests.support.accounts.personal_tokens import make_token
from tests.support.oauth.oauth_wire import machine, new_pair, redeem, server_application
from tests.support.oauth.openid_wire import openid_application
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

ORIGIN = {"Origin": "https://app.example"}
OPEN = {"/oauth/token": {"POST"}, "/oauth/revoke": {"POST"}, "/oauth/userinfo": {"GET", "POST"}}
SIMPLE = "Accept, accept-language,Content-Language , content-type"


def preflight(
    gatebell: LiveGatebell, path: str, method: str = "POST", headers: str | None = None
) -> requests.Response:
    asked = {**ORIGIN, "Access-Control-Request-Method": method}
    if headers is not None:
        asked["Access-Control-Request-Headers"] = headers
    return machine(gatebell).options(gatebell.url + path, headers=asked)


def cors_headers(answer: requests.Response) -> dict[str, str]:
    return {
        name.lower(): value
        for name, value in answer.headers.items()
        if name.lower().startswith("access-control-")
    }


@pytest.mark.spec("E1", "E2")
@pytest.mark.parametrize("path", OPEN)
@pytest.mark.parametrize("headers", [None, "", "authorization", SIMPLE, f"{SIMPLE}, Authorization"])
def test_a_preflight_for_simple_headers_and_authorization_is_answered(
    gatebell: LiveGatebell, path: str, headers: str | None
) -> None:
    for method in OPEN[path]:
        answer = preflight(gatebell, path, method, headers)
        assert answer.status_code == 200
        found = cors_headers(answer)
        names = {each.strip().lower() for each in (headers or "").split(",")} - {""}
        answered = found.pop("access-control-allow-headers", "").lower().split(",")
        assert {each.strip() for each in answered} - {""} == names
        assert set(found.pop("access-control-allow-methods").split(", ")) == OPEN[path]
        assert found == {
            "access-control-allow-origin": "*",
            "access-control-max-age": "7200",
            # The header has no effect on a preflight.
            "access-control-expose-headers": ", ".join(LIMIT_HEADERS),
        }


@pytest.mark.spec("E2")
@pytest.mark.parametrize("path", OPEN)
@pytest.mark.parametrize(
    "headers",
    ["X-Requested-With", "authorization, x-requested-with", "DPoP", "Cookie", "*", "x,,y"],
)
def test_a_preflight_for_another_header_gets_no_cors_headers(
    gatebell: LiveGatebell, path: str, headers: str
) -> None:
    assert cors_headers(preflight(gatebell, path, headers=headers)) == {}


@pytest.mark.spec("E1")
@pytest.mark.parametrize("path", OPEN)
@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "post", "HEAD", "x"])
def test_a_preflight_for_another_method_gets_no_cors_headers(
    gatebell: LiveGatebell, path: str, method: str
) -> None:
    assert cors_headers(preflight(gatebell, path, method)) == {}


@pytest.mark.spec("E1")
@pytest.mark.rfc("rfc9700-2.6-b")
@pytest.mark.parametrize(
    "path",
    [
        "/oauth/authorize",
        "/oauth/token/",
        "/oauth/token/info",
        "/oauth/introspect",
        "/oauth/logout",
        "/oauth/discovery/keys",
        "/.well-known/openid-configuration",
        "/api/v4",
        "/api/v4nothing",
        "/acme/shop/alerts/notify.json",
        "/users/sign_in",
        "/Oauth/Token",
        "/oauth/tokens",
        "/x/oauth/token",
    ],
)
def test_other_urls_answer_no_preflight(gatebell: LiveGatebell, path: str) -> None:
    for method in ("GET", "POST"):
        assert cors_headers(preflight(gatebell, path, method, "authorization")) == {}


def assert_open(answer: requests.Response) -> None:
    found = cors_headers(answer)
    found.pop("access-control-expose-headers", None)
    assert found == {"access-control-allow-origin": "*"}
    assert "Set-Cookie" not in answer.headers


@pytest.mark.spec("E3")
@pytest.mark.rfc("rfc7009-2.3-a", "oidc-core-5.3-c")
def test_answers_can_be_read_by_the_script(gatebell: LiveGatebell) -> None:
    client = openid_application(gatebell)
    pair = new_pair(gatebell, client, scope="openid")
    http = machine(gatebell)
    bearer = {**ORIGIN, "Authorization": f"Bearer {pair.access}"}
    form = {"client_id": client.client_id, "client_secret": client.secret}
    renewal = {**form, "grant_type": "refresh_token", "refresh_token": pair.refresh}
    answers = [
        http.get(f"{gatebell.url}/oauth/userinfo", headers=bearer),
        http.post(f"{gatebell.url}/oauth/userinfo", headers=bearer),
        http.post(f"{gatebell.url}/oauth/token", headers=ORIGIN, data=renewal),
        http.post(
            f"{gatebell.url}/oauth/revoke", headers=ORIGIN, data={**form, "token": pair.access}
        ),
    ]
    for answer in answers:
        assert answer.status_code == 200
        assert_open(answer)


@pytest.mark.spec("E3")
def test_errors_can_be_read_by_the_script(gatebell: LiveGatebell) -> None:
    http, url = machine(gatebell), gatebell.url
    unscoped = new_pair(gatebell, server_application(gatebell)).access
    too_large = {"grant_type": "x" * 2_000_000}
    answers = {
        400: http.post(f"{url}/oauth/token", headers=ORIGIN),
        401: http.post(f"{url}/oauth/revoke", headers=ORIGIN, data={"client_id": "x"}),
        403: http.get(
            f"{url}/oauth/userinfo", headers={**ORIGIN, "Authorization": f"Bearer {unscoped}"}
        ),
        405: http.get(f"{url}/oauth/token", headers=ORIGIN),
        413: http.post(f"{url}/oauth/token", headers=ORIGIN, data=too_large),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        assert_open(answer)
    assert_open(http.get(f"{url}/oauth/userinfo", headers=ORIGIN))


def test_documents_and_errors_about_them_can_be_read_by_the_script(gatebell: LiveGatebell) -> None:
    for path, status in {
        "/.well-known/openid-configuration": 200,
        "/.well-known/openid-configuration/of/others": 404,
        "/.well-known/oauth-authorization-server": 200,
        "/.well-known/oauth-protected-resource/api/v4": 200,
        "/oauth/discovery/keys": 200,
    }.items():
        for origin in (ORIGIN, {}):
            answer = machine(gatebell).get(gatebell.url + path, headers=origin)
            assert answer.status_code == status
            assert_open(answer)
    assert_open(machine(gatebell).post(f"{gatebell.url}/oauth/discovery/keys", headers=ORIGIN))


@pytest.mark.spec("E3")
def test_answers_have_cors_headers_without_an_origin(
    gatebell: LiveGatebell,
) -> None:
    assert_open(redeem(gatebell, server_application(gatebell), "x"))


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke", "/oauth/userinfo"])
def test_scripts_can_read_rate_limit_headers(gatebell: LiveGatebell, path: str) -> None:
    answer = machine(gatebell).post(gatebell.url + path, headers=ORIGIN)
    assert answer.headers["Access-Control-Expose-Headers"] == ", ".join(LIMIT_HEADERS)


@pytest.mark.spec("E3")
@pytest.mark.rfc("rfc9700-2.6-b")
@pytest.mark.parametrize(
    "path",
    [
        *("/oauth/authorize", "/oauth/token/info", "/users/sign_in", "/oauth/logout", "/"),
        "/acme/shop/alerts/notify.json",
    ],
)
def test_scripts_cannot_read_answers_of_other_urls(gatebell: LiveGatebell, path: str) -> None:
    answer = machine(gatebell).get(gatebell.url + path, headers=ORIGIN, allow_redirects=False)
    assert cors_headers(answer) == {}


API_HEADERS = (
    "Authorization, PRIVATE-TOKEN, Sudo, Content-Type, Idempotency-Key, If-None-Match, "
    "Platform-Release"
)
LIMIT_HEADERS = (
    *("RateLimit-Limit", "RateLimit-Observed", "RateLimit-Remaining", "RateLimit-Reset"),
    "Retry-After",
)
EXPOSED = {
    "Gatebell-Ignored-Parameters",
    *("Link", "X-Total", "X-Total-Pages", "X-Page", "X-Per-Page", "X-Next-Page", "X-Prev-Page"),
    *("RateLimit-Limit", "RateLimit-Observed", "RateLimit-Remaining", "RateLimit-Reset"),
    *("Retry-After", "ETag", "Deprecation", "Sunset"),
}


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
def test_the_api_answers_a_preflight(gatebell: LiveGatebell, method: str) -> None:
    answer = preflight(gatebell, "/api/v4/personal_access_tokens/self", method, API_HEADERS)
    assert answer.status_code == 200
    found = cors_headers(answer)
    assert found["access-control-allow-origin"] == "*"
    assert method in found["access-control-allow-methods"].split(", ")
    answered = {each.strip().lower() for each in found["access-control-allow-headers"].split(",")}
    assert answered == {each.strip().lower() for each in API_HEADERS.split(",")}
    assert "access-control-allow-credentials" not in found


@pytest.mark.parametrize(
    ("method", "headers"),
    [("LINK", "authorization"), ("GET", "DPoP"), ("GET", "private-token, cookie"), ("GET", "*")],
)
def test_the_api_rejects_preflights_for_other_methods_and_headers(
    gatebell: LiveGatebell, method: str, headers: str
) -> None:
    assert cors_headers(preflight(gatebell, "/api/v4/user", method, headers)) == {}


@pytest.mark.parametrize("origin", [ORIGIN, {}])
def test_a_script_can_read_answers_errors_and_paging_of_the_api(
    gatebell: LiveGatebell, origin: dict[str, str]
) -> None:
    token = make_token(gatebell, alice(gatebell)).clear
    http, url = machine(gatebell), f"{gatebell.url}/api/v4"
    for status, answer in {
        200: http.get(f"{url}/personal_access_tokens?private_token={token}", headers=origin),
        400: http.get(
            f"{url}/personal_access_tokens?sort=x", headers={**origin, "PRIVATE-TOKEN": token}
        ),
        401: http.get(f"{url}/user", headers=origin),
        404: http.get(f"{url}/nothing", headers=origin),
    }.items():
        assert answer.status_code == status
        found = cors_headers(answer)
        assert found.pop("access-control-allow-origin") == "*"
        assert set(found.pop("access-control-expose-headers").split(", ")) == EXPOSED
        assert found == {}


@pytest.mark.long
def test_the_api_ignores_session_cookies(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    assert browser.get(f"{gatebell.url}/").status_code == 200
    for path in ("user", "personal_access_tokens", "version"):
        answer = browser.get(f"{gatebell.url}/api/v4/{path}", headers=ORIGIN)
        assert answer.status_code == 401
        assert "Set-Cookie" not in answer.headers
