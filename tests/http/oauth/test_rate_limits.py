"""Rate limits of the API, the OAuth endpoints and pages, and their headers."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from time import sleep, time

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.exc import OperationalError
from werkzeug.test import TestResponse

from domain.accounts.users import NewUser, create_user, get_user
from domain.core.errors import NotFoundError
from domain.core.randomness import generate_random_password
from domain.oauth.personal_tokens.tokens import TokenDetails, create_personal_token
from tests.support.sign_in.password_rules import RULES
from web.admin.settings import store_setting_text
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work
from web.services import get_current_time, get_services
from web.settings.environment import Settings

HEADERS = ("Limit", "Observed", "Remaining", "Reset")
OAUTH = ("/oauth/token", "/oauth/revoke", "/oauth/introspect", "/oauth/authorize_device")


@pytest.fixture
def database_url(migrated_sqlite: Path, tmp_path: Path) -> str:
    """A SQLite database, since rate limits are not stored in the database."""
    shutil.copy(migrated_sqlite, tmp_path / "gatebell.db")
    return f"sqlite:///{tmp_path / 'gatebell.db'}"


@pytest.fixture
def limited(
    make_app: Callable[[Settings], Flask], settings: Settings
) -> Callable[..., FlaskClient]:
    """A function that returns a client of an app with the given settings."""

    def make(**changes: object) -> FlaskClient:
        return make_app(replace(settings, **changes)).test_client()  # type: ignore[arg-type]

    return make


def token_of(client: FlaskClient, name: str, *, scopes: str = "api") -> str:
    """Return a new token of the user, who is created if necessary."""
    with client.application.app_context():
        session, keyring = db.session(), get_services().keyring
        details = TokenDetails(
            name="x", scopes=scopes, expires_at=get_current_time() + timedelta(days=9)
        )
        made = create_personal_token(
            _user_id(name), details, session=session, keyring=keyring, now=get_current_time()
        )
        session.commit()
        return made.clear


def _user_id(name: str) -> int:
    with suppress(NotFoundError):
        return get_user(name, session=db.session()).id
    new = NewUser(
        username=name, email=f"{name}@a.example", name=name, password=generate_random_password()
    )
    return create_user(new, session=db.session(), now=get_current_time(), rules=RULES).id


def call(client: FlaskClient, token: str, path: str = "/user") -> TestResponse:
    return client.get(f"/api/v4{path}", headers={"PRIVATE-TOKEN": token})


def rate_limit_headers(answer: TestResponse) -> tuple[int, int, int]:
    """Return limit, observed and remaining."""
    limit, observed, remaining = (int(answer.headers[f"RateLimit-{name}"]) for name in HEADERS[:3])
    return limit, observed, remaining


def has_headers(answer: TestResponse) -> bool:
    return any(name.lower().startswith("ratelimit") for name, _ in answer.headers)


@pytest.mark.spec("L1")
def test_every_answer_of_the_api_has_rate_limit_headers(
    limited: Callable[..., FlaskClient],
) -> None:
    client = limited(api_rate_limit="5/day")
    token = token_of(client, "alice", scopes="read_user")

    good, too_small, missing = (
        call(client, token, path)
        for path in ("/user", "/personal_access_tokens", "/personal_access_tokens/self")
    )

    assert [good.status_code, too_small.status_code, missing.status_code] == [200, 403, 200]
    assert [rate_limit_headers(each) for each in (good, too_small, missing)] == [
        (5, 1, 4),
        (5, 2, 3),
        (5, 3, 2),
    ]
    assert time() < int(good.headers["RateLimit-Reset"]) <= time() + 86_400
    assert "Retry-After" not in good.headers


@pytest.mark.spec("L1")
def test_over_the_limit_the_api_answers_429(limited: Callable[..., FlaskClient]) -> None:
    client = limited(api_rate_limit="2/day")
    token = token_of(client, "alice")

    answers = [call(client, token) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    over = answers[2]
    assert over.get_json() == {"message": "429 Too Many Requests"}
    assert rate_limit_headers(over) == (2, 3, 0)
    left = int(over.headers["RateLimit-Reset"]) - time()
    assert abs(int(over.headers["Retry-After"]) - left) <= 20


@pytest.mark.spec("L1")
def test_all_tokens_of_a_user_share_a_limit(
    limited: Callable[..., FlaskClient],
) -> None:
    client = limited(api_rate_limit="2/day")
    one, other, bobs = (token_of(client, name) for name in ("alice", "alice", "bob"))

    assert [call(client, token).status_code for token in (one, other, one)] == [200, 200, 429]
    assert call(client, bobs).status_code == 200


@pytest.mark.spec("L1")
def test_requests_without_a_valid_token_are_limited_by_address(
    limited: Callable[..., FlaskClient],
) -> None:
    client = limited(api_rate_limit="2/day")
    token = token_of(client, "alice")
    nobody = client.get("/api/v4/user")
    other = {"PRIVATE-TOKEN": "gbp-other"}
    two_tokens = client.get(f"/api/v4/user?access_token={token}", headers=other)

    assert (nobody.status_code, rate_limit_headers(nobody)) == (401, (2, 1, 1))
    assert (two_tokens.status_code, rate_limit_headers(two_tokens)) == (400, (2, 2, 0))
    assert call(client, "gbp-guess").status_code == 429
    # Other clients at the same address do not affect a user with a valid token.
    assert call(client, token).status_code == 200
    elsewhere = {"REMOTE_ADDR": "192.0.2.7"}
    assert client.get("/api/v4/user", environ_overrides=elsewhere).status_code == 401


@pytest.mark.long
@pytest.mark.spec("L1")
@pytest.mark.rfc("rfc6749-2.3.1-d", "rfc7009-5-a", "rfc7662-4-b")
def test_the_oauth_endpoints_share_a_limit_by_address(
    limited: Callable[..., FlaskClient],
) -> None:
    client = limited(oauth_rate_limit="4/day")

    answers = [client.post(path) for path in OAUTH]

    assert [rate_limit_headers(answer)[1] for answer in answers] == [1, 2, 3, 4]
    assert {answer.status_code for answer in answers} == {400, 401}
    for path in OAUTH:
        over = client.post(path)
        assert over.status_code == 429
        assert set(over.get_json()) == {"error", "error_description", "error_uri", "request_id"}
        assert over.headers["Cache-Control"] == "no-store"
        assert int(over.headers["Retry-After"]) > 0
        assert over.headers["RateLimit-Remaining"] == "0"


@pytest.mark.long
@pytest.mark.spec("L1")
def test_pages_are_limited_only_if_configured(
    limited: Callable[..., FlaskClient],
) -> None:
    client = limited(page_rate_limit="1/day")

    good, over = client.get("/users/sign_in"), client.get("/users/sign_in")

    assert (good.status_code, rate_limit_headers(good)) == (200, (1, 1, 0))
    assert over.status_code == 429
    assert over.mimetype == "text/html"
    assert "Too many requests" in over.text
    assert int(over.headers["Retry-After"]) > 0
    usual = limited()
    assert not has_headers(usual.get("/users/sign_in"))


@pytest.mark.spec("L1")
def test_endpoints_without_a_limit_have_no_headers(limited: Callable[..., FlaskClient]) -> None:
    client = limited(api_rate_limit="1/day", oauth_rate_limit="1/day", page_rate_limit="1/day")
    for path in ("/healthz", "/readyz", "/oauth/token/info", "/.well-known/openid-configuration"):
        answers = [client.get(path) for _ in range(3)]
        assert 429 not in {answer.status_code for answer in answers}, path
        assert not any(has_headers(answer) for answer in answers), path


@pytest.mark.spec("L1")
@pytest.mark.parametrize("rates", ["100/month;2/day", "2/month;100/day"])
def test_the_headers_show_the_tightest_of_several_rates(
    limited: Callable[..., FlaskClient], rates: str
) -> None:
    client = limited(oauth_rate_limit=rates)
    answers = [client.post("/oauth/token") for _ in range(3)]
    assert [rate_limit_headers(answer) for answer in answers] == [(2, 1, 1), (2, 2, 0), (2, 3, 0)]
    assert answers[2].status_code == 429


@pytest.mark.spec("L1")
def test_an_exhausted_rate_does_not_stop_the_count_of_other_rates(
    limited: Callable[..., FlaskClient],
) -> None:
    client = limited(oauth_rate_limit="1/day;3/month")
    told = [rate_limit_headers(client.post("/oauth/token")) for _ in range(4)]
    assert told == [(1, 1, 0), (1, 2, 0), (1, 3, 0), (3, 4, 0)]


@pytest.mark.spec("L1")
def test_the_limit_of_pages_does_not_apply_to_the_api(limited: Callable[..., FlaskClient]) -> None:
    client = limited(page_rate_limit="1/day", api_rate_limit="", oauth_rate_limit="")
    token = token_of(client, "alice")
    for path in ("/user", "/personal_access_tokens"):
        answers = [call(client, token, path) for _ in range(3)]
        assert {answer.status_code for answer in answers} == {200}, path
        assert not any(has_headers(answer) for answer in answers), path
    assert {client.post("/oauth/token").status_code for _ in range(3)} == {400}


@pytest.mark.spec("L1")
def test_an_unrelated_error_keeps_its_own_retry_after(
    limited: Callable[..., FlaskClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = limited(oauth_rate_limit="9/day")

    def away(*_args: object) -> None:
        raise OperationalError("SELECT 1", {}, Exception("away"))

    monkeypatch.setattr("blueprints.oauth.token.read_form_request", away)
    answer = client.post("/oauth/token")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert rate_limit_headers(answer) == (9, 1, 8)


@pytest.mark.long
@pytest.mark.spec("L1")
def test_a_limit_is_changed_and_switched_off_within_a_second(
    limited: Callable[..., FlaskClient],
) -> None:
    client = limited(oauth_rate_limit="1/day")
    assert [client.post("/oauth/token").status_code for _ in range(2)] == [400, 429]

    change_limit(client, "9/day")
    assert client.post("/oauth/token").status_code == 400
    change_limit(client, "")
    assert not has_headers(client.post("/oauth/token"))


def change_limit(client: FlaskClient, limit: str) -> None:
    """Change the setting as a command does, and wait a second until it takes effect."""
    with client.application.app_context():
        store_setting_text(get_unit_of_work(), "oauth_rate_limit", limit)
        db.session.commit()
    sleep(1.1)


FORGED = (
    {"X-Forwarded-For": "{}"},
    {"X-Real-IP": "{}"},
    {"Forwarded": "for={}"},
    {"X-Client-IP": "{}", "CF-Connecting-IP": "{}", "True-Client-IP": "{}"},
)


@pytest.mark.advisory("CVE-2023-36456")
@pytest.mark.spec("L1")
@pytest.mark.rfc("rfc9700-4.13-a")
def test_forged_forwarding_headers_do_not_change_the_count(
    limited: Callable[..., FlaskClient],
) -> None:
    client = limited(oauth_rate_limit="2/day", api_rate_limit="2/day")
    for position, header in enumerate(FORGED):
        real = {"REMOTE_ADDR": f"192.0.2.{position}"}
        for method, url in (("POST", "/oauth/token"), ("GET", "/api/v4/user")):
            forged = [
                {name: value.format(f"198.51.100.{number}") for name, value in header.items()}
                for number in range(3)
            ]
            answers = [
                client.open(url, method=method, headers=each, environ_overrides=real)
                for each in forged
            ]
            assert [answer.status_code == 429 for answer in answers] == [False, False, True], header


@pytest.mark.spec("L1")
@pytest.mark.parametrize(("proxies", "position"), [(1, -1), (2, -2)])
def test_behind_proxies_the_address_from_the_last_trusted_hop_is_limited(
    limited: Callable[..., FlaskClient], proxies: int, position: int
) -> None:
    client = limited(oauth_rate_limit="2/day", trusted_proxies=proxies)

    def ask(hops: list[str]) -> int:
        return client.post("/oauth/token", headers={"X-Forwarded-For": ", ".join(hops)}).status_code

    def hops(told: str, number: int) -> list[str]:
        # All addresses but the relevant one differ, and the client invents the first address.
        made = [f"198.51.100.{number}", f"203.0.113.{number}", f"203.0.113.{number + 9}"]
        made[position] = told
        return made

    assert [ask(hops("192.0.2.1", number)) for number in range(3)] == [400, 400, 429]
    assert ask(hops("192.0.2.2", 0)) == 400


@pytest.mark.spec("L1")
def test_ipv6_clients_are_limited_by_network(limited: Callable[..., FlaskClient]) -> None:
    client = limited(oauth_rate_limit="1/day")
    for first, second, is_one in (
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::2", True),
        ("2001:db8:1:4::1", "2001:db8:1:3::1", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.3", "192.0.2.2", False),
    ):
        answers = [
            client.post("/oauth/token", environ_overrides={"REMOTE_ADDR": address})
            for address in (first, second)
        ]
        expected = [400, 429 if is_one else 400]
        assert [answer.status_code for answer in answers] == expected, (first, second)


def test_the_library_checks_limits_before_the_view_only_for_pages(app: Flask) -> None:
    hooks = app.before_request_funcs
    assert not [hook for hook in hooks.get(None, ()) if "imiter" in repr(hook)]
    assert [hook for hook in hooks["sessions"] if "imiter" in repr(hook)]
