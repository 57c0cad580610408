"""Every setting: its name, what it may be, its default and its meaning.

The environment variable of a setting is its name in capitals. This module is the only reader of
the environment.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, fields, replace
from pathlib import Path
from typing import Any

from sqlalchemy.engine import make_url

from domain.randomness import random_hex
from web import setting_kinds as kinds
from web.instance_files import make_instance_directory, read_or_write_once
from web.setting_fields import Source, about, fixed, live, made, made_secret, secret

_MIB = 1024 * 1024
_DAY = 86_400
_YEAR = 365 * _DAY


class SettingsError(Exception):
    """A setting that cannot be used; its text is one sentence that names it."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of an installation, checked."""

    host: str = fixed("127.0.0.1", kinds.host(), "Address to listen on.")
    port: int = fixed(8000, kinds.whole_number(1, 65_535), "Port to listen on.")
    base_url: str = made(
        "http://HOST:PORT",
        kinds.base_url(),
        "Address under which people and clients reach the service; also the issuer.",
    )
    trusted_proxies: int = fixed(
        0,
        kinds.whole_number(0, 10),
        "How many reverse proxies in front may tell the client's address by X-Forwarded-For.",
    )
    instance_name: str = live(
        "Gatebell", kinds.line_of_text(60), "Name of the installation, shown on every page."
    )

    instance_path: Path = made(  # noqa: RUF009 - makes a field
        "./instance", kinds.directory(), "Directory for the files that the service keeps."
    )
    database_url: str = made_secret(
        "sqlite:///gatebell.db",
        kinds.database_url(),
        "The database; a relative SQLite file lies in INSTANCE_PATH.",
    )
    database_connect_timeout_seconds: int = fixed(
        2, kinds.whole_number(1, 60, "seconds"), "How long to try to reach Postgres."
    )
    database_statement_timeout_ms: int = fixed(
        15_000,
        kinds.whole_number(100, 600_000, "milliseconds"),
        "How long Postgres may work on one statement.",
    )
    sqlite_busy_timeout_ms: int = fixed(
        5_000,
        kinds.whole_number(0, 60_000, "milliseconds"),
        "How long to wait for a lock of SQLite.",
    )

    secret_key: str = made_secret(
        "made once in INSTANCE_PATH/secret_key",
        kinds.long_secret(),
        "Signs, hashes and encrypts; the same on every machine that shares the database.",
    )
    secret_key_fallbacks: tuple[str, ...] = secret(
        (), kinds.long_secrets(), "Earlier secret keys that are still good for reading."
    )

    web_concurrency: int = fixed(2, kinds.whole_number(1, 256), "Web processes.")
    web_threads: int = fixed(8, kinds.whole_number(1, 512), "Threads in each web process.")
    worker_threads: int = fixed(
        2, kinds.whole_number(1, 64), "Threads of the process for background work."
    )
    keep_alive_seconds: int = fixed(
        65,
        kinds.whole_number(1, 3_600, "seconds"),
        "How long an idle connection stays open; more than the proxy in front waits.",
    )
    graceful_timeout_seconds: int = fixed(
        30,
        kinds.whole_number(1, 600, "seconds"),
        "How long requests in flight may take to finish when the service stops.",
    )
    request_timeout_seconds: int = fixed(
        30,
        kinds.whole_number(1, 600, "seconds"),
        "A web process that is silent for longer is replaced.",
    )

    log_level: str = fixed(
        "INFO",
        kinds.one_of("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
        "The least important events that are logged.",
    )
    log_format: str = fixed("json", kinds.one_of("json", "text"), "How log lines look.")
    metrics_token: str = secret(
        "",
        kinds.line_of_text(1_000),
        "When set, /metrics wants it as a Bearer token.",
    )

    session_lifetime_seconds: int = fixed(
        14 * _DAY,
        kinds.whole_number(60, _YEAR, "seconds"),
        "How long a person stays signed in.",
    )
    password_min_length: int = live(
        12, kinds.whole_number(8, 128, "characters"), "The shortest password that may be chosen."
    )
    sign_in_attempts_per_account: int = live(
        10,
        kinds.whole_number(1, 10_000),
        "Failed sign-ins of one account within the window before it must wait.",
    )
    sign_in_attempts_per_address: int = live(
        30,
        kinds.whole_number(1, 100_000),
        "Failed sign-ins from one address within the window before it must wait.",
    )
    sign_in_attempts_window_seconds: int = live(
        600, kinds.whole_number(1, _DAY, "seconds"), "The window in which failed sign-ins count."
    )

    access_token_lifetime_seconds: int = live(
        7_200, kinds.whole_number(1, _YEAR, "seconds"), "Lifetime of an access token."
    )
    id_token_lifetime_seconds: int = live(
        3_600, kinds.whole_number(120, _DAY, "seconds"), "Lifetime of an ID token."
    )
    authorization_code_lifetime_seconds: int = live(
        600, kinds.whole_number(1, 600, "seconds"), "Lifetime of an authorization code."
    )
    refresh_replay_seconds: int = live(
        0,
        kinds.whole_number(0, 60, "seconds"),
        "How long a used refresh token gets the same new pair again, after a lost answer.",
    )
    oauth2_device_grant_flow: bool = live(
        True,  # noqa: FBT003 - the default, not a flag
        kinds.yes_or_no(),
        "Let people approve devices by a code (RFC 8628).",
    )
    device_code_lifetime_seconds: int = live(
        300, kinds.whole_number(1, 1_800, "seconds"), "How long a device waits to be approved."
    )
    device_poll_interval_seconds: int = live(
        5, kinds.whole_number(1, 60, "seconds"), "How long a device waits between two polls."
    )
    user_code_attempts_per_user: int = live(
        10,
        kinds.whole_number(1, 10_000),
        "Wrong device codes of one user within the window before they must wait.",
    )
    user_code_attempts_per_address: int = live(
        30,
        kinds.whole_number(1, 100_000),
        "Wrong device codes from one address within the window before it must wait.",
    )
    user_code_attempts_in_all: int = live(
        1_000,
        kinds.whole_number(1, 10_000_000),
        "Wrong device codes of everybody within the window before everybody must wait.",
    )
    user_code_attempts_window_seconds: int = live(
        600, kinds.whole_number(1, _DAY, "seconds"), "The window in which wrong device codes count."
    )
    password_authentication_enabled_for_git: bool = live(
        True,  # noqa: FBT003 - the default, not a flag
        kinds.yes_or_no(),
        "Accept passwords for Git over HTTP(S), and with it the password grant.",
    )
    password_grant_without_client: bool = live(
        True,  # noqa: FBT003 - the default, not a flag
        kinds.yes_or_no(),
        "Let the password grant work without an application.",
    )
    personal_access_token_lifetime_days: int = live(
        365,
        kinds.whole_number(1, 3_650, "days"),
        "Lifetime of a personal access token that is made without an expiry.",
    )
    require_https_redirect_uris: bool = live(
        False,  # noqa: FBT003 - the default, not a flag
        kinds.yes_or_no(),
        "Refuse new redirect addresses with http, other than loopback.",
    )

    alert_body_limit_bytes: int = live(
        _MIB, kinds.whole_number(1_024, 64 * _MIB, "bytes"), "The largest webhook body."
    )
    alert_nesting_limit: int = live(
        100, kinds.whole_number(1, 500, "levels"), "The deepest nesting in a webhook body."
    )
    alert_rate_limit: str = live(
        "", kinds.rate(), "How many webhooks an integration accepts in a time."
    )
    ratelimit_storage_uri: str = fixed(
        "memory://",
        kinds.counter_storage(),
        "Where rate limits are counted; in memory each web process counts for itself.",
    )
    generic_alert_fingerprinting: bool = live(
        True,  # noqa: FBT003 - the default, not a flag
        kinds.yes_or_no(),
        "Group webhooks without a fingerprint by their content.",
    )
    delivery_keep_count: int = live(
        1_000, kinds.whole_number(10, 1_000_000), "Deliveries that an integration keeps at least."
    )
    delivery_keep_days: int = live(
        30, kinds.whole_number(1, 3_650, "days"), "How long deliveries are kept beyond that."
    )
    refused_delivery_samples_per_minute: int = live(
        30,
        kinds.whole_number(0, 10_000),
        "Refused webhooks of one integration that are kept each minute; the rest is only counted.",
    )

    form_body_limit_bytes: int = fixed(
        _MIB, kinds.whole_number(16_384, 64 * _MIB, "bytes"), "The largest body of any other form."
    )
    page_size: int = live(20, kinds.whole_number(5, 200), "Rows on a page of a list.")
    tier: str = live(
        "ultimate", kinds.one_of("free", "premium", "ultimate"), "Which features are on."
    )
    release: str = live("18.0", kinds.release(), "The running release of the interfaces.")

    @property
    def uses_sqlite(self) -> bool:
        """Tell whether the database is a SQLite file."""
        return self.database_url.startswith("sqlite")


def settings_from_environment() -> Settings:
    """Read the environment of this process."""
    return read_settings(os.environ)


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Check every variable; an empty one counts as unset.

    Raises SettingsError for the first that is wrong.
    """
    values: dict[str, Any] = {}
    for each in fields(Settings):
        text = _text_of(each, environ)
        if text:
            values[each.name] = _checked(each, text)
    values.setdefault("instance_path", Path(__file__).parents[1] / "instance")
    _make_ready(values["instance_path"])
    values.setdefault("database_url", "sqlite:///gatebell.db")
    values["database_url"] = _in_instance_path(values["database_url"], values["instance_path"])
    if "secret_key" not in values:
        values["secret_key"] = _kept_secret_key(values["instance_path"])
    if "base_url" not in values:
        values["base_url"] = _listening_url(values.get("host", Settings.host), values.get("port"))
    return Settings(**values)


def override(settings: Settings, stored: Mapping[str, str]) -> Settings:
    """Apply instance settings, which are kept in the database, with the same checks.

    What an older release stored and this one does not know or allow is passed over: it must not
    stop the service.
    """
    changes = {}
    for name, text in stored.items():
        with suppress(SettingsError):
            changes[changeable(name).name] = read_change(name, text)
    return replace(settings, **changes)


def read_change(name: str, text: str) -> Any:
    """Return the value that a change of a setting means; raise SettingsError if there is none."""
    return _checked(changeable(name), text)


def changeable(name: str) -> Field[Any]:
    """Return the setting that may be changed while the service runs, in any case of letters."""
    by_name = {each.name: each for each in fields(Settings)}
    found = by_name.get(name.lower())
    if found is None:
        raise SettingsError(f"{name} is not a setting; docs/settings.md lists them.")
    if about(found).source is not Source.LIVE:
        raise SettingsError(f"{name.upper()} is read from the environment at the start only.")
    return found


def _text_of(each: Field[Any], environ: Mapping[str, str]) -> str:
    variable = each.name.upper()
    text = environ.get(variable, "")
    file_name = environ.get(f"{variable}_FILE", "")
    if about(each).source is not Source.SECRET or not file_name:
        return text
    if text:
        raise SettingsError(f"{variable} and {variable}_FILE are both set; keep one of them.")
    try:
        return Path(file_name).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise SettingsError(f"{variable}_FILE names a file that cannot be read.") from error


def _checked(each: Field[Any], text: str) -> Any:
    known = about(each)
    try:
        return known.kind.read(text)
    except ValueError as error:
        given = "" if known.source is Source.SECRET else f", not {text!r}"
        raise SettingsError(f"{each.name.upper()} must be {known.kind.allowed}{given}.") from error


def _in_instance_path(url: str, instance_path: Path) -> str:
    parts = make_url(url)
    if parts.drivername != "sqlite":
        return url
    file = instance_path / str(parts.database)
    return parts.set(database=str(file)).render_as_string(hide_password=False)


def _make_ready(instance_path: Path) -> None:
    try:
        make_instance_directory(instance_path)
    except OSError as error:
        reason = f"{instance_path} cannot be made ({error.strerror})"
        raise SettingsError(f"INSTANCE_PATH must be a directory: {reason}.") from error


def _kept_secret_key(instance_path: Path) -> str:
    path = instance_path / "secret_key"
    try:
        return read_or_write_once(path, lambda: random_hex(32))
    except OSError as error:
        reason = f"{path} cannot be read or written ({error.strerror})"
        raise SettingsError(f"INSTANCE_PATH must be writable: {reason}.") from error


def _listening_url(host: str, port: int | None) -> str:
    # The address that means "every interface" is no address to go to.
    name = "localhost" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - compared, not bound
    return f"http://{f'[{name}]' if ':' in name else name}:{port or Settings.port}"
