"""Users and their projects and applications, stored in the database of a running service."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from http.cookies import SimpleCookie
from os import getpid
from urllib.parse import urlsplit

import requests
from sqlalchemy import update
from sqlalchemy.orm import Session

from blueprints.accounts.sign_in.attempts import create_sign_in_and_redirect
from domain.accounts.passwords import hash_password
from domain.accounts.sign_in.sessions import PASSWORD_METHODS, Authentication
from domain.accounts.users import ACTIVE, get_user
from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_password
from domain.oauth.clients.applications import store_application
from domain.oauth.clients.types import ApplicationDetails
from domain.projects import namespace_changes
from models import User
from tests.support.service.live import LiveGatebell
from tests.support.service.secrets_seen import SECRETS
from tests.support.sign_in.password_rules import QUICK
from tests.support.wire.html_forms import form_with, submit
from web.extensions import db
from web.http.transactions import allow_writes
from web.settings.environment import Settings, parse_settings

_numbers = itertools.count(1)
CALLBACK = "https://client.example/callback"


@dataclass(frozen=True, kw_only=True)
class Person:
    """A user with an account."""

    username: str
    email: str
    password: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ClientCredentials:
    """Credentials of a registered application."""

    #: Number in the URLs of its pages.
    id: int
    client_id: str
    secret: str = field(repr=False)
    redirect_uri: str
    scopes: str


@dataclass(frozen=True, kw_only=True)
class Registration:
    """Values of a new application, unless a test changes them."""

    name: str = "Deploy Board"
    redirect_uris: tuple[str, ...] = (CALLBACK,)
    scopes: str = "read_user read_api"
    confidential: bool = True
    require_pkce: bool = False
    #: True for a trusted application of the instance. Only administrators can create one.
    trusted: bool = False
    service_account: bool = False
    #: Public keys: a JWK Set, a JWK or a PEM text.
    jwks: str | None = None
    backchannel_logout_uri: str | None = None
    refresh_idle_days: int | None = None
    refresh_longest_days: int | None = None


def unique(word: str) -> str:
    """Return a name that is unique in this test session."""
    return f"{word}-{getpid()}-{next(_numbers)}"


def settings_of(gatebell: LiveGatebell) -> Settings:
    """Return the settings that concern the database of a service."""
    environment = {
        "INSTANCE_PATH": str(gatebell.instance_path),
        "DATABASE_URL": gatebell.database_url,
        "SECRET_KEY": gatebell.environment.get("SECRET_KEY", ""),
    }
    return parse_settings(environment)


@contextmanager
def database_of(gatebell: LiveGatebell) -> Iterator[Session]:
    """Open the database of a running service; changes are committed at the end."""
    with Session(gatebell.engine()) as session, session.begin():
        yield session


def now() -> datetime:
    return datetime.now(UTC)


def make_user(gatebell: LiveGatebell, *, name: str = "alice", admin: bool = False) -> Person:
    """Create a new user."""
    username = unique(name)
    person = Person(
        username=username,
        email=f"{username}@people.example",
        password=generate_random_password(),
    )
    # `create_user` checks the password, which takes longer than everything else here.
    user = User(
        username=username,
        email=person.email,
        name=name.capitalize(),
        password_hash=hash_password(person.password, QUICK),
        is_admin=admin,
        state=ACTIVE,
        created_at=now(),
    )
    with database_of(gatebell) as session:
        session.add(user)
    return person


@cache
def alice(gatebell: LiveGatebell) -> Person:
    """Return a user that all tests share, so do not change the account."""
    return make_user(gatebell, name="alice")


@cache
def bob(gatebell: LiveGatebell) -> Person:
    """Return another user that all tests share."""
    return make_user(gatebell, name="bob")


def set_state(gatebell: LiveGatebell, person: Person, state: str) -> None:
    """Lock, block or activate an account, as an administrator would."""
    statement = update(User).where(User.username == person.username).values(state=state)
    with database_of(gatebell) as session:
        session.execute(statement)


def sign_in(gatebell: LiveGatebell, person: Person) -> requests.Session:
    """Return a browser in which the user signed in with the form."""
    browser = gatebell.http()
    answer = try_to_sign_in(gatebell, person.username, person.password, browser=browser)
    assert answer.status_code == 302, answer.text
    return browser


def try_to_sign_in(
    gatebell: LiveGatebell,
    login: str,
    password: str,
    *,
    browser: requests.Session | None = None,
    **query: str,
) -> requests.Response:
    """Submit the sign-in form, in a new browser unless one is given."""
    door = browser or gatebell.http()
    page = door.get(f"{gatebell.url}/users/sign_in", params=query)
    return submit(door, page, form_with(page, "password"), login=login, password=password)


def open_browser(gatebell: LiveGatebell, person: Person) -> requests.Session:
    """Return a browser in which the user is signed in, for tests of other features.

    The session is created as the service does it after a correct password; hashing one takes much
    longer.
    """
    browser = gatebell.http()
    for name, value in _sign_in_here(gatebell, person, str(browser.headers["User-Agent"])).items():
        SECRETS.remember(value)
        browser.cookies.set(name, value, domain=cookie_domain(gatebell))
    return browser


def _sign_in_here(gatebell: LiveGatebell, person: Person, user_agent: str) -> dict[str, str]:
    """Return the cookies of a new session, created by an app of this process."""
    app = gatebell.app()
    here = {"REMOTE_ADDR": "127.0.0.1", "HTTP_USER_AGENT": user_agent}
    with app.test_request_context(base_url=gatebell.url, environ_overrides=here):
        app.preprocess_request()
        # As on the sign-in page: on SQLite, a transaction that starts with a read may not write.
        allow_writes()
        user = get_user(person.username, session=db.session())
        proof = Authentication(user_id=user.id, methods=PASSWORD_METHODS)
        answer = app.process_response(app.make_response(create_sign_in_and_redirect(proof)))
    given = SimpleCookie()
    for line in answer.headers.getlist("Set-Cookie"):
        given.load(line)
    return {name: morsel.value for name, morsel in given.items()}


def cookie_domain(gatebell: LiveGatebell) -> str:
    """Return the domain of cookies in `requests`, whose names need a dot (RFC 2965)."""
    host = urlsplit(gatebell.url).hostname or ""
    return host if "." in host else f"{host}.local"


@cache
def _cookies(gatebell: LiveGatebell, person: Person) -> dict[str, str]:
    return open_browser(gatebell, person).cookies.get_dict()


def signed_in(gatebell: LiveGatebell, person: Person) -> requests.Session:
    """Return a browser with a session that others share, so do not end it."""
    browser = gatebell.http()
    for name, value in _cookies(gatebell, person).items():
        browser.cookies.set(name, value, domain=cookie_domain(gatebell))
    return browser


def make_application(gatebell: LiveGatebell, owner: Person, **changes: object) -> ClientCredentials:
    """Register an application; `changes` are fields of Registration."""
    wanted = replace(Registration(), **changes)  # type: ignore[arg-type]
    details = ApplicationDetails(
        name=wanted.name,
        redirect_uris=wanted.redirect_uris,
        scopes=tuple(wanted.scopes.split()),
        confidential=wanted.confidential,
        require_pkce=wanted.require_pkce,
        service_account=wanted.service_account,
        jwks=wanted.jwks,
        backchannel_logout_uri=wanted.backchannel_logout_uri,
        refresh_idle_days=wanted.refresh_idle_days,
        refresh_longest_days=wanted.refresh_longest_days,
    )
    with database_of(gatebell) as session:
        user = get_user(owner.username, session=session)
        keyring = Keyring(settings_of(gatebell).secret_key)
        row, secret = store_application(
            details, owner_id=user.id, session=session, keyring=keyring, now=now()
        )
        if wanted.trusted:
            row.trusted = row.is_instance_wide = True
        return ClientCredentials(
            id=row.id,
            client_id=row.uid,
            secret=secret,
            redirect_uri=wanted.redirect_uris[0],
            scopes=row.scopes,
        )


def make_project(gatebell: LiveGatebell, owner: Person, *, visibility: str = "private") -> str:
    """Create a project in a new group, both owned by the user, and return its full path."""
    group_path = unique("acme")
    with database_of(gatebell) as session:
        user = get_user(owner.username, session=session)
        group = namespace_changes.create_group(
            group_path, reserved=frozenset(), session=session, now=now()
        )
        namespace_changes.add_owner(group, user.id, session=session, now=now())
        project = namespace_changes.create_project(
            f"{group_path}/shop",
            visibility=visibility,
            reserved=frozenset(),
            session=session,
            now=now(),
        )
        return project.path
