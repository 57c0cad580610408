"""The services of an application, and access to those of the current one."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from time import monotonic
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from flask import current_app
from itsdangerous import URLSafeTimedSerializer
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from werkzeug.routing import Map

from domain.access.actor import Actor, Seal, Work
from domain.accounts.email_addresses import Letterhead
from domain.accounts.passwords import PasswordRules
from domain.accounts.sign_up import SignUpPolicy
from domain.accounts.signing_in.actions import SignInLimits
from domain.alerts.formats.base import Reading
from domain.alerts.receiving.receivers import RefusalKind
from domain.api_usage.storing import CallCounter
from domain.clock import Clock
from domain.contacts.actions import ContactMeans
from domain.destination_actions import Sending
from domain.identity_providers.relying_party import Document, Upstream
from domain.job_results import BackupState
from domain.keyring import Keyring
from domain.notifications.outbox import OUTCOME_OF_MESSAGE
from domain.oauth.context import OAuthPolicy
from domain.oauth.personal_tokens.lifetimes import TokenLifetimes
from domain.outgoing.claims import Attempt
from domain.outgoing.signing import Message
from domain.projects.creation import ReservedNames
from domain.projects.creation import reserved_names as first_parts
from domain.projects.types import Repositories, Repository
from domain.projects.views import ProjectView
from domain.refusal_sampling import RefusalSampler
from domain.registry.client import RegistryPolicy
from domain.repositories.access import may_read
from domain.repositories.program import Git
from domain.repositories.storage import default_branch, has_branches, repository_path
from web.database.connections import KeptConnections
from web.database.write_probe import WriteProbe
from web.outgoing.apprise_processes import check_apprise_url
from web.outgoing.client import OutgoingClient, attempt
from web.settings import policies
from web.settings.policies import password_rules
from web.settings.reader import Settings, override
from web.settings.stored import STORED_SETTINGS

Made = TypeVar("Made")

#: Seconds until a process applies a changed setting.
_REFRESH_SECONDS = 1.0
#: Seconds that a thread waits for another one that reads the settings.
_PATIENCE_SECONDS = 0.25


class LiveSettings:
    """The settings of the environment, with those stored in the database in their place."""

    def __init__(self, settings: Settings, connections: KeptConnections) -> None:
        """Start with the settings of the environment."""
        self._environment = settings
        self._current = settings
        self._connections = connections
        self._read_at = float("-inf")
        self._reading = Lock()
        self._derived: dict[Callable[[Settings], Any], tuple[Settings, Any]] = {}

    @property
    def environment(self) -> Settings:
        """The settings of the environment alone."""
        return self._environment

    def current(self) -> Settings:
        """Return the settings in force, at most a second old."""
        # Others wait briefly for the thread that reads; while the database is unavailable, the last
        # known settings stay in force.
        is_old = monotonic() - self._read_at > _REFRESH_SECONDS
        if is_old and self._reading.acquire(timeout=_PATIENCE_SECONDS):
            try:
                self._refresh()
            finally:
                self._reading.release()
        return self._current

    def derived(self, make: Callable[[Settings], Made]) -> Made:
        """Return a value derived from the settings in force, computed once for each change."""
        current = self.current()
        made_for, made = self._derived.get(make, (None, None))
        if made_for is not current:
            made = make(current)
            self._derived[make] = (current, made)
        return cast("Made", made)

    def _refresh(self) -> None:
        began = monotonic()
        if began - self._read_at <= _REFRESH_SECONDS:
            return  # another thread has read them meanwhile
        with suppress(SQLAlchemyError):
            stored: dict[str, str] = dict(self._connections.all(STORED_SETTINGS))
            current = override(self._environment, stored)
            if current != self._current:  # keeps the derived values otherwise
                self._current = current
        self._read_at = began


@dataclass(frozen=True, kw_only=True)
class Services:
    """The services of an application."""

    clock: Clock
    keyring: Keyring
    connections: KeptConnections
    live_settings: LiveSettings
    refusals: RefusalSampler[RefusalKind]
    #: Of token requests: by application and reason.
    token_refusals: RefusalSampler[tuple[int, str]]
    calls: CallCounter
    write_probe: WriteProbe
    #: What identity providers said of themselves.
    provider_documents: dict[str, tuple[datetime, Document | None]] = field(default_factory=dict)
    #: When periodic jobs last had their turn, as far as this process knows.
    last_turns: dict[str, datetime] = field(default_factory=dict)
    #: The last known state of backups, under `state`.
    last_backup: dict[str, BackupState] = field(default_factory=dict)


def services() -> Services:
    """Return the services of the application that handles this request."""
    found: Services = current_app.extensions["gatebell"]
    return found


def unit_of_work(
    actor: Actor, session: Session, more: Mapping[type[Any], Callable[[], Any]]
) -> Work:
    """Return the unit of work of an actor in the transaction of a session.

    It finds the policies of `more`, and those of this module.
    """

    def find_policy(kind: type[Made]) -> Made:
        return cast("Made", (more.get(kind) or _POLICIES[kind])())

    return Work(actor=actor, session=session, now=now(), settings=settings(), policy=find_policy)


def now() -> datetime:
    """Return the current time by the application's clock."""
    return services().clock()


def settings() -> Settings:
    """Return the settings in force."""
    return services().live_settings.current()


def _in_force(make: Callable[[Settings], Made]) -> Callable[[], Made]:
    """Return the function that returns a policy by the settings in force."""

    def policy() -> Made:
        return services().live_settings.derived(make)

    return policy


git = _in_force(policies.git)
oauth_policy = _in_force(policies.oauth_policy)
reading = _in_force(policies.reading)
registry_policy = _in_force(policies.registry_policy)
sign_in_limits = _in_force(policies.sign_in_limits)
sign_up_policy = _in_force(policies.sign_up_policy)
token_lifetimes = _in_force(policies.token_lifetimes)


def letterhead() -> Letterhead:
    """Return what messages about e-mail addresses are written with."""
    current = settings()
    return Letterhead(
        instance_name=current.instance_name,
        base_url=current.base_url,
        keyring=services().keyring,
        has_mail_server=bool(current.mail_url),
    )


def signing_keys(settings: Settings) -> list[str]:
    """Return the keys in the order of itsdangerous, which signs with the last."""
    return [*reversed(settings.secret_key_fallbacks), settings.secret_key]


def sealer(purpose: str) -> URLSafeTimedSerializer:
    """Return what signs values for a purpose (`web/sealing/sealer.py`)."""
    keys = signing_keys(services().live_settings.environment)
    return URLSafeTimedSerializer(keys, salt=purpose)


def _send(url: str, message: Message, secrets: Sequence[str]) -> Attempt:
    """Send a signed message to a URL that somebody has entered."""
    client = OutgoingClient.of(settings())
    try:
        return attempt(client, url, message, secrets, now=now())
    finally:
        client.close()


def _upstream() -> Upstream:
    fetch = OutgoingClient.of(settings()).fetch
    return Upstream(fetch=fetch, documents=services().provider_documents)


#: Reserved besides the first segments of routes, because they look like parts of the service.
_ALSO_RESERVED = frozenset(
    {
        *("-", "help", "dashboard", "explore", "search"),
        # Files that browsers and robots request from every host.
        *("robots.txt", "favicon.ico", "sitemap.xml"),
        *("apple-touch-icon.png", "apple-touch-icon-precomposed.png"),
    }
)


def reserved_in(url_map: Map) -> frozenset[str]:
    """Return the names that top-level groups must not have because of URLs."""
    return first_parts(rule.rule for rule in url_map.iter_rules()) | _ALSO_RESERVED


def _reserved_names() -> ReservedNames:
    """Return the reserved names with the first segment of the base path.

    Otherwise `/gate/shop` would be ambiguous, because a proxy may strip `/gate` or not.
    """
    base_path = urlsplit(settings().base_url).path
    return ReservedNames(reserved_in(current_app.url_map) | first_parts([base_path]))


def _repository_of(project: ProjectView) -> Repository:
    """Return what its files tell: two looks at the disk, so that a list can have it.

    Where nothing was pushed, the default branch is the one that the first push is expected to have.
    """
    path = repository_path(settings().repositories_path, project.id, project.created_at)
    branch = default_branch(path).decode(errors="replace") if may_read(project) else None
    return Repository(default_branch=branch, is_empty=not has_branches(path))


def _contact_means() -> ContactMeans:
    def find_outcome(message_id: int) -> Sequence[str | None] | None:
        return services().connections.first(OUTCOME_OF_MESSAGE, {"message_id": message_id})

    return ContactMeans(
        read_url=lambda url: check_apprise_url(url, settings()), find_outcome=find_outcome
    )


#: What actions can ask their unit of work for, by its type.
_POLICIES: Mapping[type[Any], Callable[[], Any]] = {
    ContactMeans: _contact_means,
    Git: git,
    Keyring: lambda: services().keyring,
    Letterhead: letterhead,
    OAuthPolicy: oauth_policy,
    PasswordRules: lambda: password_rules(settings()),
    Reading: reading,
    RegistryPolicy: registry_policy,
    Repositories: lambda: Repositories(_repository_of),
    ReservedNames: _reserved_names,
    Seal: lambda: Seal(lambda value, purpose: str(sealer(purpose).dumps(value))),
    Sending: lambda: Sending(_send),
    SignInLimits: sign_in_limits,
    SignUpPolicy: sign_up_policy,
    TokenLifetimes: token_lifetimes,
    Upstream: _upstream,
}
