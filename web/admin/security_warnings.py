"""Warnings about settings that weaken security, with advice."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from sqlalchemy.engine import make_url

from domain.accounts.sign_up import SIGN_UP_OPEN
from web.admin.settings import format_setting_title
from web.settings.environment import Settings
from web.settings.kinds import list_database_hosts
from web.settings.policies.accounts import build_sign_up_policy
from web.settings.policies.tokens import build_token_lifetimes

_MAX_TOKEN_DAYS = 366
_MAX_TOKEN_SECONDS = 86_400
_MIN_PASSWORD_LENGTH = 12


@dataclass(frozen=True, kw_only=True)
class SecurityWarning:
    """A setting whose value weakens security, with an explanation."""

    setting: str
    words: str

    @property
    def title(self) -> str:
        """Title of the setting."""
        return format_setting_title(self.setting)


def _is_on_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_database_connection_unverified(settings: Settings) -> bool:
    """Return whether a third party could read or redirect the connection to a remote database."""
    url = make_url(settings.database_url)
    is_elsewhere = not all(
        _is_on_loopback(_build_host_url(each)) for each in list_database_hosts(url)
    )
    return is_elsewhere and url.query.get("sslmode") != "verify-full"


def _build_host_url(host: str) -> str:
    return f"//[{host}]" if ":" in host else f"//{host}"


def _is_rate_limit_store_unencrypted(settings: Settings) -> bool:
    url = settings.ratelimit_storage_uri
    return url.startswith("redis:") and not _is_on_loopback(url)


def _is_base_url_unencrypted(settings: Settings) -> bool:
    return settings.base_url.startswith("http:") and not _is_on_loopback(settings.base_url)


_RISKS: tuple[tuple[str, Callable[[Settings], bool], str], ...] = (
    (
        "base_url",
        _is_base_url_unencrypted,
        "starts with http: passwords, codes and tokens are sent unencrypted.",
    ),
    (
        "database_url",
        _is_database_connection_unverified,
        "has no sslmode=verify-full: the connection may be unencrypted, or go to an impostor.",
    ),
    (
        "ratelimit_storage_uri",
        _is_rate_limit_store_unencrypted,
        "starts with redis: the password and the counters are sent unencrypted. Use rediss:.",
    ),
    (
        "access_token_lifetime_seconds",
        lambda settings: settings.access_token_lifetime_seconds > _MAX_TOKEN_SECONDS,
        "is more than a day: a stolen access token stays valid for this long.",
    ),
    (
        "personal_access_token_lifetime_days",
        lambda settings: settings.personal_access_token_lifetime_days > _MAX_TOKEN_DAYS,
        "is more than a year: forgotten tokens stay valid.",
    ),
    (
        "release",
        lambda settings: build_token_lifetimes(settings).usual is None,
        "is before 16.0: access tokens without an expiry date never expire.",
    ),
    (
        "password_min_length",
        lambda settings: settings.password_min_length < _MIN_PASSWORD_LENGTH,
        f"is less than {_MIN_PASSWORD_LENGTH}: short passwords can be guessed.",
    ),
    (
        "sign_up",
        lambda settings: settings.sign_up == SIGN_UP_OPEN and not settings.sign_up_email_domains,
        "allows all email addresses: anyone who can reach this instance can create an account.",
    ),
    (
        "sign_up",
        lambda settings: settings.sign_up != build_sign_up_policy(settings).mode,
        "has no effect: it requires MAIL_URL, and domains also requires SIGN_UP_EMAIL_DOMAINS.",
    ),
    (
        "invitations_create_accounts",
        lambda settings: settings.invitations_create_accounts,
        "is on: every user can invite new users with any email address.",
    ),
    (
        "api_rate_limit",
        lambda settings: not settings.api_rate_limit,
        "is off: scripts can send unlimited requests.",
    ),
    (
        "oauth_rate_limit",
        lambda settings: not settings.oauth_rate_limit,
        "is off: one IP address can request tokens without limit.",
    ),
    (
        "metrics_networks",
        lambda settings: not settings.metrics_token and "/0" in settings.metrics_networks,
        "contains all addresses: anyone who can reach this instance can read /metrics.",
    ),
    (
        "log_level",
        lambda settings: settings.log_level == "DEBUG",
        "is DEBUG. Use this level only for troubleshooting.",
    ),
)


def list_security_warnings(settings: Settings) -> Iterator[SecurityWarning]:
    """Yield the security risks of the current settings, highest risk first."""
    for setting, is_risky, words in _RISKS:
        if is_risky(settings):
            yield SecurityWarning(setting=setting, words=words)
