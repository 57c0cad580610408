"""What one application is made of, found in one place."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic

from flask import current_app
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from domain.accounts.knocks import KnockLimits
from domain.alerts.formats import Reading
from domain.alerts.refusals import RefusalSampler
from domain.clock import Clock
from domain.keyring import Keyring
from domain.oauth.context import (
    DevicePolicy,
    OAuthPolicy,
    PasswordPolicy,
    PushPolicy,
    RegistrationPolicy,
)
from models import InstanceSetting
from web.counters import Counters
from web.hot_database import HotDatabase
from web.password_rules import hash_cost
from web.settings import Settings, override

_SETTINGS = select(InstanceSetting.name, InstanceSetting.value)
#: How long a change of a setting may take to reach a process.
_REFRESH_SECONDS = 1.0


class LiveSettings:
    """The environment's settings with what the database has in their place."""

    def __init__(self, settings: Settings, hot: HotDatabase) -> None:
        """Start with the environment's."""
        self._environment = settings
        self._current = settings
        self._hot = hot
        self._read_at = float("-inf")

    @property
    def environment(self) -> Settings:
        """The settings without what the database has in their place."""
        return self._environment

    def current(self) -> Settings:
        """Return the settings in force, at most a second old."""
        if monotonic() - self._read_at > _REFRESH_SECONDS:
            self._read_at = monotonic()
            self._refresh()
        return self._current

    def _refresh(self) -> None:
        try:
            stored = {row.name: row.value for row in self._hot.all(_SETTINGS)}
        except SQLAlchemyError:
            return  # while the database is away the last known settings stay in force
        self._current = override(self._environment, stored)


@dataclass(frozen=True, kw_only=True)
class Services:
    """Collaborators of every request."""

    clock: Clock
    keyring: Keyring
    hot: HotDatabase
    live_settings: LiveSettings
    refusals: RefusalSampler
    counters: Counters


def services() -> Services:
    """Return the services of the application that handles this request."""
    found: Services = current_app.extensions["gatebell"]
    return found


def now() -> datetime:
    """Return the present moment, by the application's clock."""
    return services().clock()


def settings() -> Settings:
    """Return the settings in force."""
    return services().live_settings.current()


def reading() -> Reading:
    """Return how alert bodies are read."""
    current = settings()
    return Reading(
        nesting_limit=current.alert_nesting_limit,
        automatic_fingerprint=current.generic_alert_fingerprinting,
    )


def oauth_policy() -> OAuthPolicy:
    """Return the choices of this instance for the authorization server."""
    current = settings()
    return OAuthPolicy(
        issuer=current.base_url,
        access_token_lifetime=timedelta(seconds=current.access_token_lifetime_seconds),
        id_token_lifetime=timedelta(seconds=current.id_token_lifetime_seconds),
        code_lifetime=timedelta(seconds=current.authorization_code_lifetime_seconds),
        require_https_redirect_uris=current.require_https_redirect_uris,
        refresh_replay=timedelta(seconds=current.refresh_replay_seconds),
        devices=_device_policy(current),
        passwords=PasswordPolicy(
            is_offered=current.password_authentication_enabled_for_git,
            works_without_client=current.password_grant_without_client,
            limits=knock_limits(),
        ),
        pushed_requests=PushPolicy(
            lifetime=timedelta(seconds=current.pushed_request_lifetime_seconds),
            is_required=current.require_pushed_authorization_requests,
        ),
        registration=RegistrationPolicy(
            is_offered=current.dynamic_client_registration,
            is_open=current.open_client_registration,
        ),
    )


def _device_policy(current: Settings) -> DevicePolicy:
    return DevicePolicy(
        is_offered=current.oauth2_device_grant_flow,
        code_lifetime=timedelta(seconds=current.device_code_lifetime_seconds),
        poll_interval=current.device_poll_interval_seconds,
        guesses_per_user=current.user_code_attempts_per_user,
        guesses_per_address=current.user_code_attempts_per_address,
        guesses_in_all=current.user_code_attempts_in_all,
        guess_window=timedelta(seconds=current.user_code_attempts_window_seconds),
    )


def knock_limits() -> KnockLimits:
    """Return how often somebody may say who they are."""
    current = settings()
    return KnockLimits(
        per_account=current.sign_in_attempts_per_account,
        per_address=current.sign_in_attempts_per_address,
        second_factor_per_account=current.second_factor_attempts_per_account,
        window=timedelta(seconds=current.sign_in_attempts_window_seconds),
        cost=hash_cost(current),
    )
