"""Requests that other benchmarks publish, without a comparison to peers: logins, userinfo, DPoP."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlencode

import requests

from bench.gatebell import RunningGatebell
from bench.gatebell_seed import SCOPES, TokenFamily, store_pairs
from bench.shots import VALUE_PLACEHOLDER, OneTimeValues, Shot, ValueMode
from bench.workloads import RequestKind
from domain.accounts.users import get_user
from domain.core.keyring import CredentialType, Keyring
from tests.support.accounts.people import (
    ClientCredentials,
    database_of,
    make_application,
    now,
    settings_of,
)
from tests.support.oauth.proofs import Prover
from tests.support.wire.html_forms import form_with

_TOKEN_COUNT = 1_000
#: Number of proofs per second, which exceeds what a small machine can verify. Signing a proof takes
#: a fraction of a millisecond.
_PROOFS_PER_SECOND = 1_000
_RESPONSE_TIMEOUT_SECONDS = 60
_FORM_HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}


class DpopProofs(OneTimeValues):
    """DPoP proofs that are signed just before use. Each proof is valid once and for a minute."""

    def __init__(self, prover: Prover, token: str, url: str) -> None:
        super().__init__(())
        self._prover, self._token, self._url = prover, token, url

    def take(self, count: int) -> Sequence[str]:
        """Sign `count` proofs."""
        return [self._prover.showing(self._token, self._url)["DPoP"] for _ in range(count)]


def build_figure_shots(running: RunningGatebell) -> Mapping[RequestKind, Shot]:
    """Store the data for the requests in a running service, and return the requests."""
    live, owner = running.live, running.owner
    prover = Prover()
    person, machine = (
        make_application(live, owner, name=name, scopes=scopes, service_account=is_machine)
        for name, scopes, is_machine in (
            ("Person", f"openid profile email {SCOPES}", False),
            ("Machine", "read_api", True),
        )
    )
    with database_of(live) as session:
        family = TokenFamily(
            application_id=person.id,
            user_id=get_user(owner.username, session=session).id,
            keyring=Keyring(settings_of(live).secret_key),
            moment=now(),
        )
        families = (
            replace(family, scopes="openid profile email"),
            replace(family, key_thumbprint=prover.thumbprint),
        )
        of_people, bound = (
            store_pairs(each, CredentialType.ACCESS_TOKEN, _TOKEN_COUNT, session)
            for each in families
        )
    return {
        RequestKind.CLIENT_CREDENTIALS: Shot(
            method="POST",
            path="/oauth/token",
            headers=_build_basic_header(machine),
            body="grant_type=client_credentials",
            expected={200: ('"access_token"',)},
        ),
        RequestKind.USERINFO: Shot(
            method="GET",
            path="/oauth/userinfo",
            headers={"Authorization": f"Bearer {VALUE_PLACEHOLDER}"},
            mode=ValueMode.ROTATE,
            values=OneTimeValues(of_people),
            expected={200: ('"sub"',)},
        ),
        RequestKind.BOUND_INTROSPECTION: Shot(
            method="POST",
            path="/oauth/introspect",
            headers=_build_basic_header(person),
            body=f"token={VALUE_PLACEHOLDER}",
            mode=ValueMode.ROTATE,
            values=OneTimeValues(bound),
            expected={200: ('"jkt"',)},
        ),
        RequestKind.BOUND_CALL: Shot(
            method="GET",
            path="/api/v4/user",
            headers={"Authorization": f"DPoP {bound[0]}", "DPoP": VALUE_PLACEHOLDER},
            mode=ValueMode.ONCE,
            values=DpopProofs(prover, bound[0], f"{live.url}/api/v4/user"),
            values_a_second=_PROOFS_PER_SECOND,
            expected={200: ('"username"',)},
        ),
        RequestKind.LOGIN: _build_login_shot(running),
    }


def _build_basic_header(client: ClientCredentials) -> Mapping[str, str]:
    known = b64encode(f"{client.client_id}:{client.secret}".encode()).decode()
    return {**_FORM_HEADERS, "Authorization": f"Basic {known}"}


def _build_login_shot(running: RunningGatebell) -> Shot:
    """Return a request that submits the sign-in form with the password.

    A correct password is answered with a redirect and a new session, a wrong one with the form.
    """
    live, owner = running.live, running.owner
    with requests.Session() as browser:
        browser.trust_env, browser.verify = False, False
        page = browser.get(f"{live.url}/users/sign_in", timeout=_RESPONSE_TIMEOUT_SECONDS)
        cookies = "; ".join(f"{each.name}={each.value}" for each in browser.cookies)
    form = form_with(page, "password").filled(login=owner.username, password=owner.password)
    return Shot(
        method="POST",
        path="/users/sign_in",
        headers={**_FORM_HEADERS, "Cookie": cookies, "Origin": live.url},
        body=urlencode(form),
        expected={302: ()},
    )
