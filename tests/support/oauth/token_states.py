"""States of a client and its credential, of which tests store any number of copies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from sqlalchemy import insert

from domain.core.keyring import CredentialType, Keyring
from domain.core.randomness import generate_credential, generate_random_hex
from domain.oauth.clients.assertions import ASSERTION_TYPE
from models import (
    AccessToken,
    Application,
    ApplicationSecret,
    Authorization,
    DeviceAuthorization,
    User,
)
from tests.support.oauth.proofs import Prover
from web.extensions import db

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
#: Remaining lifetime of a credential that is still valid at NOW.
MOMENT = timedelta(microseconds=1)
URI = "https://client.example/callback"
VERIFIER = "v" * 43
CHALLENGE: str = create_s256_code_challenge(VERIFIER)
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
KEYRING = Keyring("the newest key", "an older key")
#: Key of credentials that were stored before the newest key was added.
FORMER = Keyring("an older key")
_numbers = count(1)


class State:
    """Rows and request of a case, which each copy gets."""

    def __init__(self, form: Mapping[str, str]) -> None:
        self.user: dict[str, Any] = {"state": "active"}
        self.application: dict[str, Any] = {"scopes": "api read_user openid", "confidential": True}
        self.secrets: list[dict[str, Any]] = [{}]
        self.grant: dict[str, Any] | None = {"scopes": "api read_user", "redirect_uri": URI}
        self.token: dict[str, Any] | None = None
        self.device: dict[str, Any] | None = None
        self.form: dict[str, Any] = dict(form)
        #: Index of the application's secret that the client sends; None if it sends none.
        self.sent_secret: int | None = 0
        self.headers: dict[str, str] = {}
        #: True if the credential was issued to another application.
        self.is_foreign = False
        self.credential_keyring = KEYRING
        self.prover: Prover | None = None
        self.replay_seconds = 10


def code_state() -> State:
    state = State({"grant_type": "authorization_code", "redirect_uri": URI})
    in_rows("grant", code_expires_at=NOW + MOMENT, code_used_at=None)(state)
    return state


def refresh_state() -> State:
    state = State({"grant_type": "refresh_token"})
    state.token = {"created_at": NOW - timedelta(days=3), "expires_at": NOW - timedelta(days=2)}
    in_rows("grant", created_at=NOW - timedelta(days=9), code_used_at=NOW)(state)
    return state


def poll_state() -> State:
    state = State({"grant_type": DEVICE_GRANT})
    state.device = {"expires_at": NOW + MOMENT, "interval": 5, "last_polled_at": None}
    return state


def request_state() -> State:
    return State({"scope": "read_user"})


STATES = {
    "code": code_state,
    "refresh": refresh_state,
    "poll": poll_state,
    "request": request_state,
}
Change = Callable[[State], None]


def in_rows(part: str, **values: Any) -> Change:
    def change(state: State) -> None:
        row = getattr(state, part)
        if row is not None:
            row.update(values)

    return change


def form(**values: str) -> Change:
    return lambda state: state.form.update(values)


def attribute(name: str, value: Any) -> Change:
    return lambda state: setattr(state, name, value)


def first_secret(**values: Any) -> Change:
    return lambda state: state.secrets[0].update(values)


def two_secrets(state: State) -> None:
    state.secrets = [{"expires_at": NOW + MOMENT}, {}]


def both_public(state: State) -> None:
    state.application["confidential"] = False
    state.secrets, state.sent_secret = [{}, {}], None


def public_with_another_secret(state: State) -> None:
    state.application["confidential"], state.sent_secret = False, 7


def public_with_an_assertion(state: State) -> None:
    state.application["confidential"], state.sent_secret = False, None
    state.form |= {"client_assertion": "x", "client_assertion_type": ASSERTION_TYPE}


def pkce(verifier: str | None, challenge: str | None) -> Change:
    def change(state: State) -> None:
        in_rows("grant", code_challenge=challenge)(state)
        if verifier is not None:
            state.form["code_verifier"] = verifier

    return change


def proof(state: State) -> None:
    state.prover = Prover()


def foreign(state: State) -> None:
    state.is_foreign = True


def approved(state: State) -> None:
    if state.device is not None:
        state.device["approved_at"] = NOW - timedelta(seconds=9)


CLIENT_CHANGES: dict[str, Change] = {
    "another secret": attribute("sent_secret", 7),
    "no secret": attribute("sent_secret", None),
    "an expired secret": first_secret(expires_at=NOW),
    "two secrets": two_secrets,
    "a secret under an older key": first_secret(keyring=FORMER),
    "a secret used just now": first_secret(last_used_at=NOW),
    "a public client without its secret": both_public,
    "a public client with a secret": in_rows("application", confidential=False),
    "a public client with another secret": public_with_another_secret,
    "bound tokens required": in_rows("application", require_dpop=True),
    "registered for nothing": in_rows("application", client_metadata={"grant_types": []}),
    "registered without grants": in_rows("application", client_metadata={}),
    "no metadata in JSON": in_rows("application", client_metadata=None),
    "refreshing devices": in_rows("application", refresh_for_devices=True),
    "used just now": in_rows("application", last_used_at=NOW),
    "an unknown client": form(client_id="unknown"),
    "an assertion": form(client_assertion="x", client_assertion_type="y"),
    "an assertion of a public client": public_with_an_assertion,
    "a repeated parameter": form(client_id=["a", "b"]),  # type: ignore[arg-type]
    "a broken proof": attribute("headers", {"DPoP": "x"}),
    "a proof": proof,
    "scopes removed": in_rows("application", scopes="api"),
}
#: Changes of the grant behind a credential.
GRANT_CHANGES: dict[str, Change] = {
    "a foreign client": foreign,
    "an older key of the credential": attribute("credential_keyring", FORMER),
    "a locked user": in_rows("user", state="blocked"),
    "all scopes removed": in_rows("application", scopes="read_alerts"),
    "openid granted": in_rows("grant", scopes="read_user openid", nonce="n", sid="s"),
    "offline access granted": in_rows("grant", scopes="read_user offline_access"),
    "a grant without scopes": in_rows("grant", scopes=""),
    "a revoked grant": in_rows("grant", revoked_at=NOW),
}
CHANGES: dict[str, dict[str, Change]] = {
    "code": {
        **CLIENT_CHANGES,
        **GRANT_CHANGES,
        "expired": in_rows("grant", code_expires_at=NOW),
        "without an end": in_rows("grant", code_expires_at=None),
        "used": in_rows("grant", code_used_at=NOW - timedelta(days=1)),
        "another address": form(redirect_uri=f"{URI}/"),
        "an address with NUL": form(redirect_uri=f"{URI}\0"),
        "no address": form(redirect_uri=""),
        "proved": pkce(VERIFIER, CHALLENGE),
        "another challenge": pkce(VERIFIER, "c" * 43),
        "no verifier": pkce(None, CHALLENGE),
        "no challenge": pkce(VERIFIER, None),
        "a malformed verifier": pkce("short", CHALLENGE),
        "a malformed verifier without a challenge": pkce("short", None),
        "another key": in_rows("grant", key_thumbprint="k"),
        "unknown": form(code=generate_credential(CredentialType.AUTHORIZATION_CODE)),
        "malformed": form(code="\ud800"),
    },
    "refresh": {
        **CLIENT_CHANGES,
        **GRANT_CHANGES,
        "limits of refreshing": in_rows(
            "application", refresh_idle_days=4, refresh_longest_days=10
        ),
        "a long idle token": in_rows("application", refresh_idle_days=2),
        "an old grant": in_rows("application", refresh_longest_days=9),
        "groups that are gone": in_rows("application", allowed_group_ids=[]),
        "revoked": in_rows("token", revoked_at=NOW - timedelta(days=1)),
        "refreshed": in_rows("token", revoked_at=NOW, refreshed_at=NOW),
        "bound": in_rows("token", key_thumbprint="k"),
        "without a grant": attribute("grant", None),
        "with admin mode": in_rows("token", keeps_admin_mode=True),
        "exchanged": in_rows("token", is_exchanged=True),
        "narrowed": form(scope="read_user"),
        "widened": form(scope="api read_alerts"),
        "with its address": form(redirect_uri=URI),
        "another address": form(redirect_uri="https://other.example"),
        "with a verifier": form(code_verifier=VERIFIER),
        "without replays": attribute("replay_seconds", 0),
        "unknown": form(refresh_token=generate_credential(CredentialType.REFRESH_TOKEN)),
        "malformed": form(refresh_token="\ud800"),
    },
    "poll": {
        **CLIENT_CHANGES,
        "a foreign client": foreign,
        "an older key of the credential": attribute("credential_keyring", FORMER),
        "expired": in_rows("device", expires_at=NOW),
        "denied": in_rows("device", denied_at=NOW),
        "approved": approved,
        "redeemed": in_rows("device", redeemed_at=NOW),
        "polled before": in_rows("device", last_polled_at=NOW - timedelta(seconds=60)),
        "polled just now": in_rows("device", last_polled_at=NOW),
        "almost on time": in_rows("device", last_polled_at=NOW - timedelta(seconds=4.5)),
        "a longer interval": in_rows("device", interval=60),
        "the longest interval": in_rows("device", interval=3_600),
        "too early at the longest interval": in_rows(
            "device", interval=3_600, last_polled_at=NOW - timedelta(seconds=9)
        ),
        "unknown": form(device_code=generate_random_hex(32)),
    },
    "request": {
        **CLIENT_CHANGES,
        "no scope": form(scope=""),
        "unknown scopes": form(scope="read_user other"),
        "other scopes": form(scope="read_alerts"),
        "out of order": form(scope="openid api offline_access api"),
    },
}


_SERVED = {
    *("", "two secrets", "a secret under an older key", "a secret used just now"),
    *("a public client without its secret", "a public client with a secret"),
    *("registered without grants", "no metadata in JSON", "refreshing devices"),
    *("used just now", "a proof"),
}
_GRANTED = _SERVED | {"scopes removed", "an older key of the credential"}
_ISSUED = _GRANTED | {"openid granted", "offline access granted", "a grant without scopes"}
#: Changes after which a request still succeeds.
SERVED = {
    "code": _ISSUED | {"proved"},
    "refresh": _ISSUED
    | {"with admin mode", "exchanged", "narrowed", "with its address", "without replays"}
    | {"limits of refreshing"},
    "poll": _GRANTED
    | {"approved", "polled before", "polled just now", "almost on time", "a longer interval"}
    | {"the longest interval", "too early at the longest interval"},
    "request": _SERVED | {"bound tokens required", "a broken proof", "no scope", "out of order"},
}


@dataclass
class Copy:
    """A stored copy of a state."""

    state: State
    user_id: int
    form: dict[str, Any]
    headers: dict[str, str]


def stored(state: State) -> Copy:
    """Store a copy of a state with its own ids and secrets."""
    number = next(_numbers)
    name = f"user{number}"
    person = {"username": name, "email": f"{name}@example.org", "name": name, "password_hash": "x"}
    user_id = _row(User, **person, **state.user)
    made = {"redirect_uris": [URI], "owner_id": user_id, "name": f"App {number}"}
    own_id, other_id = (
        _row(Application, uid=f"{uid}{number}", **{**made, **state.application})
        for uid in ("own", "other")
    )
    sent = {"client_id": f"own{number}"}
    secrets = [generate_credential(CredentialType.CLIENT_SECRET) for _ in range(8)]
    for text, values in zip(secrets, state.secrets, strict=False):
        own = {key: value for key, value in values.items() if key != "keyring"}
        digest = values.get("keyring", KEYRING).compute_digest(text)
        _row(ApplicationSecret, application_id=own_id, digest=digest, **own)
    if state.sent_secret is not None:
        sent["client_secret"] = secrets[state.sent_secret]
    sent |= _credential(state, user_id, other_id if state.is_foreign else own_id)
    db.session.commit()
    headers = dict(state.headers)
    if state.prover is not None:
        iat = int(NOW.timestamp())
        headers["DPoP"] = state.prover.proof("POST", "http://localhost/oauth/token", iat=iat)
    return Copy(state, user_id, {**sent, **state.form}, headers)


def _credential(state: State, user_id: int, application_id: int) -> dict[str, str]:
    """Store the credential and its grant, and return the request parameter."""
    digest, holder = state.credential_keyring.compute_digest, {"application_id": application_id}
    grant_id, code = None, generate_credential(CredentialType.AUTHORIZATION_CODE)
    is_granted = state.device is None or state.device.get("approved_at") is not None
    if state.grant is not None and is_granted:
        values = {"auth_time": NOW, "code_digest": digest(code), **state.grant}
        grant_id = _row(Authorization, user_id=user_id, **holder, **values)
    if state.device is not None:
        digests = {"device_code_digest": digest(code), "user_code_digest": digest(f"of {code}")}
        _row(DeviceAuthorization, **holder, **digests, scopes="read_user", **state.device)
        return {"device_code": code}
    if state.token is not None:
        refresh = generate_credential(CredentialType.REFRESH_TOKEN)
        digests = {"digest": digest(f"of {refresh}"), "refresh_digest": digest(refresh)}
        belongs = {**holder, "user_id": user_id, "authorization_id": grant_id}
        _row(AccessToken, **belongs, scopes="api", **digests, **state.token)
        return {"refresh_token": refresh}
    return {"code": code} if "grant_type" in state.form else {}


def _row(table: Any, **values: Any) -> int:
    known = {"created_at": NOW - timedelta(days=10)} if hasattr(table, "created_at") else {}
    stored_id: int = db.session.scalars(
        insert(table).values({**known, **values}).returning(table.id)
    ).one()
    return stored_id
