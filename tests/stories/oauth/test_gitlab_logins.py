"""The GitLab logins of Grafana and oauth2-proxy, reimplemented from their sources.

Both are Go programs that are in none of our package registries. The sources are Grafana's
pkg/login/social/connectors/gitlab_oauth.go and oauth2-proxy's providers/gitlab.go.
"""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest
import requests
from authlib.integrations.requests_client import OAuth2Session

from domain.access.roles import Role
from domain.projects import namespace_changes
from domain.projects.members import OPERATOR_VIEWER, add_member
from tests.stories.third_parties import Browser
from tests.support.accounts.administration import find_user_id
from tests.support.accounts.namespaces import get_namespace
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    bob,
    database_of,
    make_application,
    make_project,
    make_user,
    now,
    open_browser,
    unique,
)
from tests.support.mail.email_links import new_address
from tests.support.oauth.openid_wire import verify_id_token
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases


class TurnedAwayError(Exception):
    """The program rejects a sign-in; the text is the reason."""


@dataclass
class Guest:
    """A user who signed in to a program."""

    login: str
    email: str
    groups: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Login:
    """A program that knows the service's URL and its own credentials."""

    service: LiveGatebell
    client: ClientCredentials
    scope: str

    def walk_in(self, person: Person) -> Guest:
        """Sign a user in with a browser.

        Raise TurnedAwayError if the program rejects the user.
        """
        session = OAuth2Session(
            self.client.client_id,
            self.client.secret,
            scope=self.scope,
            redirect_uri=self.client.redirect_uri,
        )
        session.trust_env = False
        url, state = session.create_authorization_url(f"{self.service.url}/oauth/authorize")
        returned = Browser(open_browser(self.service, person), person).walk(url)
        token = session.fetch_token(
            f"{self.service.url}/oauth/token", authorization_response=returned, state=state
        )
        return self.judge(token, session)

    def judge(self, token: dict[str, Any], session: OAuth2Session) -> Guest:
        """Check the tokens, and use them to read the user."""
        raise NotImplementedError

    def get(self, session: OAuth2Session, path: str, **query: str) -> requests.Response:
        answer: requests.Response = session.get(self.service.url + path, params=query)
        assert answer.status_code == 200, answer.text
        return answer


class Grafana(Login):
    """Grafana reads the ID token without checking its signature, or otherwise uses the API."""

    allowed_groups: Iterable[str] = ()

    def judge(self, token: dict[str, Any], session: OAuth2Session) -> Guest:
        guest = (
            self._by_token(token["id_token"], session)
            if "id_token" in token
            else self._by_api(session)
        )
        if self.allowed_groups and not set(guest.groups) & set(self.allowed_groups):
            raise TurnedAwayError("user is not a member of one of the required groups")
        return guest

    def _by_token(self, id_token: str, session: OAuth2Session) -> Guest:
        payload = id_token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        login = claims["preferred_username"]
        if claims.get("email_verified") is not True:
            raise TurnedAwayError(f"user {login}'s email is not confirmed")
        groups = self.get(session, "/oauth/userinfo").json()["groups"]
        return Guest(login, claims["email"], groups)

    def _by_api(self, session: OAuth2Session) -> Guest:
        user = self.get(session, "/api/v4/user").json()
        if not user.get("confirmed_at"):
            raise TurnedAwayError(f"user {user['username']}'s email is not confirmed")
        if user["state"] != "active":
            raise TurnedAwayError(f"user {user['username']} is inactive")
        assert isinstance(user["id"], int)
        return Guest(user["username"], user["email"], self._groups(session))

    def _groups(self, session: OAuth2Session) -> list[str]:
        found, page = [], "1"
        while page:
            answer = self.get(
                session, "/api/v4/groups", per_page="50", min_access_level="10", page=page
            )
            found += [each["full_path"] for each in answer.json()]
            page = answer.headers.get("X-Next-Page", "")
        return found


@dataclass(frozen=True)
class OAuth2Proxy(Login):
    """oauth2-proxy checks the ID token, userinfo, and the access to configured projects."""

    projects: tuple[str, ...] = ()
    #: Minimum role in a project: Reporter, unless configured otherwise.
    least: int = 20

    def judge(self, token: dict[str, Any], session: OAuth2Session) -> Guest:
        assert (
            verify_id_token(self.service, token["id_token"]).claims["aud"] == self.client.client_id
        )
        told = self.get(session, "/oauth/userinfo").json()
        if told.get("email_verified") is not True:
            raise TurnedAwayError("user email is not verified")
        guest = Guest(told.get("nickname") or told["sub"], told["email"], [*told["groups"]])
        for path in self.projects:
            found = self.get(session, f"/api/v4/projects/{quote(path, safe='')}").json()
            held = found["permissions"]
            access = held["project_access"] or held["group_access"]
            if not found["archived"] and access and access["access_level"] >= self.least:
                guest.groups.append(f"project:{path}")
        return guest


@pytest.fixture
def person(gatebell: LiveGatebell) -> Person:
    return make_user(gatebell)


def application(gatebell: LiveGatebell, scope: str) -> ClientCredentials:
    return make_application(gatebell, bob(gatebell), scopes=scope)


def vouch_for(gatebell: LiveGatebell, person: Person) -> None:
    assert gatebell.cli("users", "verify", person.username)["verified"] == 1


def join(gatebell: LiveGatebell, person: Person) -> str:
    """Make a user a member of a new group with a subgroup; return the path."""
    path = unique("team")
    with database_of(gatebell) as session:
        for each in (path, f"{path}/below"):
            namespace_changes.create_group(each, reserved=frozenset(), session=session, now=now())
        place = get_namespace(path, session=session)
        add_member(
            place, person.username, Role.GUEST, viewer=OPERATOR_VIEWER, session=session, now=now()
        )
    return path


@pytest.mark.parametrize("scope", ["openid email profile", "read_api"])
def test_grafana_accepts_users_with_a_verified_address(
    gatebell: LiveGatebell, person: Person, scope: str
) -> None:
    grafana = Grafana(gatebell, application(gatebell, scope), scope)
    group = join(gatebell, person)
    with pytest.raises(TurnedAwayError, match="email is not confirmed"):
        grafana.walk_in(person)
    vouch_for(gatebell, person)
    guest = grafana.walk_in(person)
    assert (guest.login, guest.email) == (person.username, person.email)
    assert sorted(guest.groups) == [group, f"{group}/below"]
    # A new address is not verified yet.
    gatebell.cli("users", "change", person.username, "--email", new_address())
    with pytest.raises(TurnedAwayError, match="email is not confirmed"):
        grafana.walk_in(person)


@pytest.mark.parametrize("scope", ["openid email profile", "read_api"])
def test_grafana_accepts_members_of_a_group(
    gatebell: LiveGatebell, person: Person, scope: str
) -> None:
    class OfATeam(Grafana):
        allowed_groups = (unique("other"), join(gatebell, person))

    vouch_for(gatebell, person)
    stranger = make_user(gatebell)
    vouch_for(gatebell, stranger)
    grafana = OfATeam(gatebell, application(gatebell, scope), scope)
    assert grafana.walk_in(person).login == person.username
    with pytest.raises(TurnedAwayError, match="required groups"):
        grafana.walk_in(stranger)


@pytest.mark.parametrize("more", ["", " profile"])
def test_oauth2_proxy_accepts_users_with_a_verified_address(
    gatebell: LiveGatebell, person: Person, more: str
) -> None:
    scope = f"openid email read_api{more}"  # Scopes that it requests if projects are configured.
    own, foreign = make_project(gatebell, person), make_project(gatebell, bob(gatebell))
    shown = make_project(gatebell, bob(gatebell), visibility="public")
    proxy = OAuth2Proxy(gatebell, application(gatebell, scope), scope, projects=(own, shown))
    group = join(gatebell, person)
    with pytest.raises(TurnedAwayError, match="user email is not verified"):
        proxy.walk_in(person)
    vouch_for(gatebell, person)
    guest = proxy.walk_in(person)
    # Without the scope profile it gets no username, and uses the subject.
    login = person.username if more else str(find_user_id(gatebell, person))
    assert (guest.login, guest.email) == (login, person.email)
    assert {group, f"{group}/below", f"project:{own}"} <= set(guest.groups)
    assert not {f"project:{shown}", f"project:{foreign}"} & set(guest.groups)
