"""What one application is made of, found in one place."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic

from flask import current_app
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from domain.alerts.deliveries import RefusalSampler
from domain.alerts.formats import Reading
from domain.clock import Clock
from domain.keyring import Keyring
from domain.oauth.context import OAuthPolicy
from models import InstanceSetting
from web.database import HotDatabase
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
        code_lifetime=timedelta(seconds=current.authorization_code_lifetime_seconds),
        require_https_redirect_uris=current.require_https_redirect_uris,
    )
