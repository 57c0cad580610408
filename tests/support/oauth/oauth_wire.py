"""Single requests of OAuth, for tests of single responses."""

from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import requests
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from sqlalchemy import select

from models import AccessToken
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    alice,
    bob,
    database_of,
    make_application,
    signed_in,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

VERIFIER = "a-verifier-of-a-client.that~has_enough-characters"
CHALLENGE: str = create_s256_code_challenge(VERIFIER)
PKCE = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}
STATE = "a state that comes back"

Changes = str | list[str] | None


@cache
def machine(gatebell: LiveGatebell) -> requests.Session:
    """Return a session for requests that clients send themselves."""
    return gatebell.http()


@cache
def server_application(gatebell: LiveGatebell) -> ClientCredentials:
    """Return a confidential, trusted application; tests do not change it."""
    return make_application(gatebell, bob(gatebell), name="Server App", trusted=True)


@cache
def phone_application(gatebell: LiveGatebell) -> ClientCredentials:
    """Return a public, trusted application; tests do not change it."""
    return make_application(
        gatebell, bob(gatebell), name="Phone App", trusted=True, confidential=False
    )


def changed(parameters: dict[str, str], changes: dict[str, Changes]) -> list[tuple[str, str]]:
    """Change parameters. A list repeats a parameter, and None removes it."""
    pairs: list[tuple[str, str]] = []
    for name, value in {**parameters, **changes}.items():
        texts = value if isinstance(value, list) else [value]
        pairs += [(name, text) for text in texts if text is not None]
    return pairs


def authorization_url(gatebell: LiveGatebell, client: ClientCredentials, **changes: Changes) -> str:
    """Return the authorization URL of a client; every client sends a state."""
    parameters = {
        "client_id": client.client_id,
        "redirect_uri": client.redirect_uri,
        "response_type": "code",
        "scope": client.scopes,
        "state": STATE,
    }
    return f"{gatebell.url}/oauth/authorize?{urlencode(changed(parameters, changes))}"


def open_and_follow(browser: requests.Session, url: str) -> requests.Response:
    """Open a URL and follow redirects within the service."""
    answer = browser.get(url, allow_redirects=False)
    for _ in range(10):
        location = urljoin(answer.url, answer.headers.get("Location", ""))
        if not answer.is_redirect or urlsplit(location).netloc != urlsplit(url).netloc:
            return answer
        answer = browser.get(location, allow_redirects=False)
    raise AssertionError(f"{url} leads in circles, at last to {answer.url}")


def open_authorization(
    browser: requests.Session,
    gatebell: LiveGatebell,
    client: ClientCredentials,
    **changes: Changes,
) -> requests.Response:
    """Open the authorization URL of a client in the browser."""
    return open_and_follow(browser, authorization_url(gatebell, client, **changes))


def submit_decision(
    browser: requests.Session, page: requests.Response, decision: str = "authorize"
) -> requests.Response:
    """Press a button of the consent page."""
    return submit(browser, page, form_with(page, "decision"), decision=decision)


def sign_in_on(
    browser: requests.Session, page: requests.Response, person: Person
) -> requests.Response:
    """Submit the sign-in page and follow its redirect."""
    form = form_with(page, "password")
    answer = submit(browser, page, form, login=person.username, password=person.password)
    assert answer.status_code == 302, answer.text
    return open_and_follow(browser, urljoin(page.url, answer.headers["Location"]))


def parse_redirect(answer: requests.Response) -> dict[str, str]:
    """Return the parameters that the browser brings back to the application."""
    assert answer.status_code == 302, f"{answer.status_code}: {answer.text}"
    pairs = parse_qsl(urlsplit(answer.headers["Location"]).query, keep_blank_values=True)
    found = dict(pairs)
    assert len(found) == len(pairs), pairs
    return found


def new_code(gatebell: LiveGatebell, client: ClientCredentials, **changes: Changes) -> str:
    """Let Alice approve an application, if the service shows a consent page; return the code."""
    browser = signed_in(gatebell, alice(gatebell))
    answer = open_authorization(browser, gatebell, client, **changes)
    if not answer.is_redirect:
        answer = submit_decision(browser, answer)
    return parse_redirect(answer)["code"]


def post_token(gatebell: LiveGatebell, form: Any = None, **options: Any) -> requests.Response:
    """Send a token request without changes."""
    return machine(gatebell).post(f"{gatebell.url}/oauth/token", data=form, **options)


def redeem(
    gatebell: LiveGatebell, client: ClientCredentials, code: str, /, **changes: Changes
) -> requests.Response:
    """Exchange a code, with the secret in the body unless it is removed."""
    parameters = {
        "grant_type": "authorization_code",
        "client_id": client.client_id,
        "client_secret": client.secret,
        "code": code,
        "redirect_uri": client.redirect_uri,
    }
    return post_token(gatebell, changed(parameters, changes))


def redeem_publicly(
    gatebell: LiveGatebell, client: ClientCredentials, code: str, **changes: Changes
) -> requests.Response:
    """Exchange a code without a secret, with the verifier."""
    given: dict[str, Changes] = {"client_secret": None, "code_verifier": VERIFIER, **changes}
    return redeem(gatebell, client, code, **given)


@dataclass(frozen=True)
class TokenPair:
    """An access token and its refresh token."""

    access: str
    refresh: str
    answer: dict[str, Any]


def parse_token_pair(answer: requests.Response) -> TokenPair:
    """Return the tokens of a successful response."""
    assert answer.status_code == 200, answer.text
    body = answer.json()
    return TokenPair(body["access_token"], body["refresh_token"], body)


def new_pair(gatebell: LiveGatebell, client: ClientCredentials, **changes: Changes) -> TokenPair:
    """Get tokens for Alice, for a trusted application with a secret."""
    return parse_token_pair(redeem(gatebell, client, new_code(gatebell, client, **changes)))


def new_public_pair(gatebell: LiveGatebell, client: ClientCredentials) -> TokenPair:
    """Get tokens for Alice, for a trusted application without a secret."""
    code = new_code(gatebell, client, **PKCE)
    return parse_token_pair(redeem_publicly(gatebell, client, code))


def refresh(
    gatebell: LiveGatebell, client: ClientCredentials, token: str, /, **changes: Changes
) -> requests.Response:
    """Request a new pair of tokens."""
    parameters = {
        "grant_type": "refresh_token",
        "client_id": client.client_id,
        "client_secret": client.secret,
        "refresh_token": token,
    }
    return post_token(gatebell, changed(parameters, changes))


def age_refreshes(gatebell: LiveGatebell, by: timedelta) -> None:
    """Move past refreshes into the past."""
    with database_of(gatebell) as session:
        refreshed = session.scalars(
            select(AccessToken).where(AccessToken.refreshed_at.is_not(None))
        )
        for token in refreshed:
            assert token.refreshed_at is not None
            token.refreshed_at -= by


def revoke(
    gatebell: LiveGatebell, client: ClientCredentials, token: str, /, **changes: Changes
) -> requests.Response:
    """Request the revocation of a token."""
    parameters = {
        "client_id": client.client_id,
        "client_secret": client.secret,
        "token": token,
    }
    return machine(gatebell).post(f"{gatebell.url}/oauth/revoke", data=changed(parameters, changes))


def token_info(gatebell: LiveGatebell, token: str) -> requests.Response:
    """Request information about a token."""
    return machine(gatebell).get(
        f"{gatebell.url}/oauth/token/info", headers={"Authorization": f"Bearer {token}"}
    )


def is_token_valid(gatebell: LiveGatebell, access_token: str) -> bool:
    """Return whether an access token is valid."""
    status = token_info(gatebell, access_token).status_code
    assert status in {200, 401}
    return status == 200


def read_error_text(answer: requests.Response) -> str:
    """Return the text of a response without its request id, which differs each time."""
    return answer.text.replace(answer.headers["X-Request-Id"], "this one")


def assert_explained(answer: requests.Response) -> None:
    """Check that an error contains its request id and the URL of its explanation."""
    body = answer.json()
    more = {"interval"} if body["error"] == "slow_down" else set()
    assert set(body) == {"error", "error_description", "error_uri", "request_id"} | more
    assert body["error_uri"].endswith(f"/help/errors#{body['error']}")
    # Section 5.2 allows only these characters in a URI.
    assert all("!" <= each <= "~" and each not in '"\\' for each in body["error_uri"])
    assert body["request_id"] == answer.headers["X-Request-Id"]


def assert_refused(answer: requests.Response, error: str, status: int = 400) -> None:
    """Check that a response is an error of RFC 6749 section 5.2 with this code."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Pragma"] == "no-cache"
    body = answer.json()
    assert_explained(answer)
    assert body["error"] == error
    # Section 5.2 allows only these characters in a description.
    assert all(" " <= each <= "~" and each not in '"\\' for each in body["error_description"])


def assert_refused_on_a_page(answer: requests.Response) -> None:
    """Check that the response is an error page and no redirect."""
    assert answer.status_code == 400, f"{answer.status_code}: {answer.headers.get('Location')}"
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "Location" not in answer.headers
    assert "Refresh" not in answer.headers
    assert "http-equiv" not in answer.text


def exchange(
    gatebell: LiveGatebell, person: Person, /, *, auth: Any = None, **changes: Changes
) -> requests.Response:
    """Send username and password, without a client unless one is given."""
    parameters = {
        "grant_type": "password",
        "username": person.username,
        "password": person.password,
    }
    return post_token(gatebell, changed(parameters, changes), auth=auth)


def offered_grants(gatebell: LiveGatebell) -> list[str]:
    """Return the grants that the metadata names."""
    address = f"{gatebell.url}/.well-known/oauth-authorization-server"
    grants: list[str] = machine(gatebell).get(address).json()["grant_types_supported"]
    return grants
