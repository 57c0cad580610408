"""Objects that views, jobs and commands of an application share, and functions that return them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib import import_module
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast

from flask import current_app
from itsdangerous import URLSafeTimedSerializer
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.access.actor import Actor, LinkSigner, UnitOfWork
from domain.core.clock import Clock
from domain.core.keyring import Keyring
from web.database.autocommit_pool import AutocommitPool
from web.database.write_probe import WriteProbe
from web.settings.environment import Settings, apply_stored_settings
from web.settings.stored_settings import STORED_SETTINGS_QUERY

if TYPE_CHECKING:
    from domain.accounts.identity_providers.provider_client import JsonDocument
    from domain.accounts.passwords import PasswordRules
    from domain.accounts.sign_in.actions import SignInLimits
    from domain.accounts.sign_up import SignUpPolicy
    from domain.alerts.formats.base import ParserSettings
    from domain.alerts.receiving.receivers import RejectionKind
    from domain.core.job_results import BackupState
    from domain.core.rejected_request_sampling import RejectedRequestSampler
    from domain.git.program import Git
    from domain.oauth.context import OAuthPolicy
    from domain.oauth.personal_tokens.lifetimes import TokenLifetimes
    from domain.registry.client import RegistryPolicy
    from domain.releases.usage.call_counts import CallCounter

Derived = TypeVar("Derived")

#: Number of seconds until a process applies a changed setting.
_REFRESH_INTERVAL_SECONDS = 1.0
#: Number of seconds that a thread waits for another thread that reads the settings.
_READ_WAIT_SECONDS = 0.25


class LiveSettings:
    """Settings from the environment, overridden by the settings stored in the database."""

    def __init__(self, settings: Settings, connections: AutocommitPool) -> None:
        """Start with the settings from the environment."""
        self._environment = settings
        self._current = settings
        self._connections = connections
        self._read_at = float("-inf")
        self._reading = Lock()
        self._derived: dict[Callable[[Settings], Any], tuple[Settings, Any]] = {}

    @property
    def environment_settings(self) -> Settings:
        """Settings from the environment, without the stored settings."""
        return self._environment

    def get_current_settings(self) -> Settings:
        """Return the current settings, at most a second old."""
        # Other threads wait briefly for the thread that reads. While the database is unavailable,
        # the last known settings remain in effect.
        is_old = monotonic() - self._read_at > _REFRESH_INTERVAL_SECONDS
        if is_old and self._reading.acquire(timeout=_READ_WAIT_SECONDS):
            try:
                self._reload_settings()
            finally:
                self._reading.release()
        return self._current

    def get_derived_value(self, make: Callable[[Settings], Derived]) -> Derived:
        """Return a value derived from the current settings, computed once for each change."""
        current = self.get_current_settings()
        made_for, made = self._derived.get(make, (None, None))
        if made_for is not current:
            made = make(current)
            self._derived[make] = (current, made)
        return cast("Derived", made)

    def _reload_settings(self) -> None:
        began = monotonic()
        if began - self._read_at <= _REFRESH_INTERVAL_SECONDS:
            return  # another thread has read the settings in the meantime
        with suppress(SQLAlchemyError):
            stored: dict[str, str] = dict(
                self._connections.execute_statement(STORED_SETTINGS_QUERY)
            )
            current = apply_stored_settings(self._environment, stored)
            if current != self._current:  # derived values are kept otherwise
                self._current = current
        self._read_at = began


@dataclass(frozen=True, kw_only=True)
class Services:
    """Objects that all views, jobs and commands of an application share."""

    clock: Clock
    keyring: Keyring
    connections: AutocommitPool
    live_settings: LiveSettings
    refusals: "RejectedRequestSampler[RejectionKind]"
    #: Sampler of rejected token requests by application and reason.
    token_refusals: "RejectedRequestSampler[tuple[int, str]]"
    calls: "CallCounter"
    write_probe: WriteProbe
    #: Metadata documents of identity providers.
    provider_documents: "dict[str, tuple[datetime, JsonDocument | None]]" = field(
        default_factory=dict
    )
    #: Times of the latest known runs of periodic jobs.
    last_turns: dict[str, datetime] = field(default_factory=dict)
    #: Last known state of backups, under the key `state`.
    last_backup: "dict[str, BackupState]" = field(default_factory=dict)


def get_services() -> Services:
    """Return the services of the application that handles this request."""
    found: Services = current_app.extensions["gatebell"]
    return found


def create_unit_of_work(actor: Actor, session: Session) -> UnitOfWork:
    """Return the unit of work for an actor in a session's transaction."""

    def find_policy(kind: type[Derived]) -> Derived:
        name = f"{kind.__module__}.{kind.__qualname__}"
        return cast("Derived", import_function(_POLICIES[name])())

    return UnitOfWork(
        actor=actor,
        session=session,
        now=get_current_time(),
        settings=get_settings(),
        policy=find_policy,
    )


def get_current_time() -> datetime:
    """Return the current time from the application's clock."""
    return get_services().clock()


def get_settings() -> Settings:
    """Return the current settings, including changes that administrators made at runtime."""
    return get_services().live_settings.get_current_settings()


@cache
def import_function(place: str) -> Callable[..., Any]:
    """Import the function named `module:name`."""
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


#: Names of functions that create policies from the settings.
_policy_functions: list[str] = []


def _build_policy_getter(module_and_name: str) -> Callable[[], Any]:
    """Return a function that returns a policy for the current settings."""
    place = f"web.settings.policies.{module_and_name}"
    _policy_functions.append(place)
    return lambda: get_services().live_settings.get_derived_value(import_function(place))


get_git: "Callable[[], Git]" = _build_policy_getter("repositories:build_git")
get_oauth_policy: "Callable[[], OAuthPolicy]" = _build_policy_getter("oauth:build_oauth_policy")
get_password_rules: "Callable[[], PasswordRules]" = _build_policy_getter(
    "accounts:build_password_rules"
)
get_parser_settings: "Callable[[], ParserSettings]" = _build_policy_getter(
    "alerts:build_parser_settings"
)
get_registry_policy: "Callable[[], RegistryPolicy]" = _build_policy_getter(
    "registry:build_registry_policy"
)
get_sign_in_limits: "Callable[[], SignInLimits]" = _build_policy_getter(
    "accounts:build_sign_in_limits"
)
get_sign_up_policy: "Callable[[], SignUpPolicy]" = _build_policy_getter(
    "accounts:build_sign_up_policy"
)
get_token_lifetimes: "Callable[[], TokenLifetimes]" = _build_policy_getter(
    "tokens:build_token_lifetimes"
)


def list_secret_keys(settings: Settings) -> list[str]:
    """Return the secret keys for itsdangerous, with the signing key last."""
    return [*reversed(settings.secret_key_fallbacks), settings.secret_key]


def create_signing_serializer(purpose: str) -> URLSafeTimedSerializer:
    """Return the serializer that signs values for a purpose (`web/sealing/sealed_values.py`)."""
    keys = list_secret_keys(get_services().live_settings.environment_settings)
    return URLSafeTimedSerializer(keys, salt=purpose)


def get_keyring() -> Keyring:
    """Return the keyring, which contains the secret keys."""
    return get_services().keyring


def build_link_signer() -> LinkSigner:
    """Return the function that signs a value for a purpose."""
    return LinkSigner(lambda value, purpose: str(create_signing_serializer(purpose).dumps(value)))


#: Names of policy types and of the functions that create them, for the unit of work of actions.
#: Names are used instead of objects, so that a process loads only the policies that its actions
#: use.
_POLICIES: Mapping[str, str] = {
    "domain.access.actor.LinkSigner": "web.services:build_link_signer",
    "domain.accounts.email_addresses.AccountMessageBuilder": (
        "web.policies.mail:get_account_message_builder"
    ),
    "domain.accounts.passwords.PasswordRules": "web.services:get_password_rules",
    "domain.accounts.sign_up.SignUpPolicy": "web.services:get_sign_up_policy",
    "domain.accounts.sign_in.actions.SignInLimits": "web.services:get_sign_in_limits",
    "domain.alerts.formats.base.ParserSettings": "web.services:get_parser_settings",
    "domain.alerts.storing.inbound_delivery.ReceiverContext": (
        "web.http.receiver_context:build_receiver_context"
    ),
    "domain.paging.contacts.actions.ContactFunctions": (
        "web.policies.contacts:build_contact_functions"
    ),
    "domain.delivery.destination_actions.ImmediateSender": (
        "web.policies.outgoing_messages:build_message_sender"
    ),
    "domain.accounts.identity_providers.provider_client.ProviderHttpAccess": (
        "web.policies.identity_providers:build_provider_access"
    ),
    "domain.core.keyring.Keyring": "web.services:get_keyring",
    "domain.oauth.context.OAuthPolicy": "web.services:get_oauth_policy",
    "domain.oauth.personal_tokens.lifetimes.TokenLifetimes": "web.services:get_token_lifetimes",
    "domain.projects.namespace_changes.ReservedNames": (
        "web.policies.reserved_names:get_reserved_names"
    ),
    "domain.projects.types.RepositoryLookup": "web.policies.repositories:build_repository_lookup",
    "domain.registry.client.RegistryPolicy": "web.services:get_registry_policy",
    "domain.git.program.Git": "web.services:get_git",
}


def load_policies() -> None:
    """Import all policies, in a process whose children share the loaded modules."""
    for place in (*_POLICIES.values(), *_policy_functions):
        import_function(place)
