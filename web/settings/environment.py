"""Reads the settings from the environment.

No other module reads environment variables.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import Field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import quote

from domain.core.randomness import generate_random_hex
from web.instance_files import make_instance_directory, read_or_create_file
from web.settings.definitions import Settings
from web.settings.fields import SettingSource, get_setting_metadata
from web.settings.kinds import InvalidSettingValueError, SettingKind
from web.settings.unsupported_names import REMOVED_SETTINGS, SETTINGS_BY_OTHER_NAME

_PREFIX = "GATEBELL_"
#: Variables of OpenSSL that resemble settings.
_LIBRARY_VARIABLES = frozenset({"SSL_CERT_FILE", "SSL_CERT_DIR"})
#: Defaults by PROFILE. The description of PROFILE in settings.md lists them.
_PROFILE_DEFAULTS: Mapping[str, Mapping[str, int]] = {
    "standard": {},
    "small": {
        "web_concurrency": 1,
        "database_pool_size": 4,
        "password_hash_memory_kib": 19_456,
    },
}
#: Minimum similarity, from 0 to 1, between a misspelled name and a setting. Underscores are
#: ignored.
_MIN_SIMILARITY = 0.85

__all__ = [
    "WRONG_SETTING_STATUS",
    "Settings",
    "SettingsError",
    "apply_stored_settings",
    "build_child_environment",
    "get_changeable_setting",
    "list_ignored_variables",
    "list_names_in_environment",
    "load_settings",
    "parse_setting_value",
    "parse_settings",
    "pop_environment_variable",
    "set_environment",
]

#: Exit status of a program that cannot start because of a wrong setting or another problem.
WRONG_SETTING_STATUS = 2


class SettingsError(Exception):
    """Error for an invalid setting. The message names the setting."""

    #: Additional sentence about a part of the value, or an empty string.
    detail: str = ""


def load_settings() -> Settings:
    """Return the settings from the environment of this process."""
    return parse_settings(os.environ)


def parse_settings(environ: Mapping[str, str]) -> Settings:
    """Parse and validate all variables and return the settings.

    An empty variable counts as unset, except that it turns off a rate limit. Raise SettingsError
    for the first invalid variable.
    """
    values: dict[str, Any] = {}
    for each in fields(Settings):
        text = _read_setting_text(each, environ)
        if text or _is_rate_limit_off(each, environ):
            values[each.name] = _parse_value(each, get_setting_metadata(each).kind, text)
    for name, value in _PROFILE_DEFAULTS[values.get("profile", Settings.profile)].items():
        values.setdefault(name, value)
    values.setdefault("instance_path", Path(__file__).parents[2] / "instance")
    _prepare_instance_path(values["instance_path"])
    values.setdefault("repositories_path", values["instance_path"] / "repositories")
    if "database_url" in values:
        values["database_url"] = _resolve_sqlite_url(
            values["database_url"], values["instance_path"]
        )
    else:
        file = str(values["instance_path"] / "gatebell.db")
        values["database_url"] = f"sqlite:///{quote(file, safe=' +/')}"  # as SQLAlchemy writes it
    if "secret_key" not in values:
        values["secret_key"] = _get_generated_secret_key(
            values["database_url"], values["instance_path"]
        )
    _check_tls(values)
    if "base_url" not in values:
        values["base_url"] = _build_listening_url(values)
    return Settings(**values)


def _check_tls(values: Mapping[str, Any]) -> None:
    if ("tls_certificate" in values) != ("tls_key" in values):
        raise SettingsError("TLS_CERTIFICATE and TLS_KEY must be set together.")
    if "tls_certificate" in values and values.get("base_url", "").startswith("http:"):
        raise SettingsError("BASE_URL must begin with https: because TLS_CERTIFICATE is set.")


def apply_stored_settings(settings: Settings, stored_values: Mapping[str, str]) -> Settings:
    """Return the settings, overridden by the valid settings that are stored in the database.

    Stored settings that this release does not support or allow are ignored, so that they cannot
    stop the service.
    """
    changes = {}
    for name, text in stored_values.items():
        with suppress(SettingsError):
            changes[get_changeable_setting(name).name] = parse_setting_value(name, text)
    return replace(settings, **changes)


def parse_setting_value(name: str, text: str) -> Any:
    """Parse a new value of a setting.

    Raise SettingsError if it is invalid.
    """
    setting = get_changeable_setting(name)
    return _parse_value(setting, get_setting_metadata(setting).runtime_kind, text)


def get_changeable_setting(name: str) -> Field[Any]:
    """Return the setting with this name, ignoring case.

    Raise SettingsError if it does not exist or cannot change at runtime.
    """
    by_name = {each.name: each for each in fields(Settings)}
    found = by_name.get(name.lower())
    if found is None:
        raise SettingsError(f"{name} is not a setting. docs/settings.md lists all settings.")
    if get_setting_metadata(found).source is not SettingSource.LIVE:
        raise SettingsError(
            f"{name.upper()} is only read from the environment when the service starts. Set it "
            "there and restart the service."
        )
    return found


def list_ignored_variables() -> tuple[str, ...]:
    """Return a message for each environment variable that looks like a setting but is ignored."""
    return (
        *(
            f"{name} is not a setting. Did you mean {meant}?"
            for name, meant in _find_misspelled_variables(os.environ)
        ),
        *(
            f"{name} is no longer a setting and is ignored. Remove it, and see {document}."
            for name, document in _find_removed_variables(os.environ)
        ),
    )


def _find_removed_variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in sorted(environ):
        known = name.upper().removeprefix(_PREFIX).removesuffix("_FILE")
        if environ[name] and known in REMOVED_SETTINGS:
            yield name, REMOVED_SETTINGS[known]


def _find_misspelled_variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    ours = {each.name.upper(): each for each in fields(Settings)}
    known = {**dict.fromkeys(ours), **dict.fromkeys(f"{name}_FILE" for name in ours)}
    given = {name for name in known if environ.get(name)}
    for name in sorted(set(environ) - set(known) - _LIBRARY_VARIABLES):
        if not environ[name]:
            continue
        meant = SETTINGS_BY_OTHER_NAME.get(
            name.upper().removesuffix("_FILE")
        ) or _find_prefixed_variables(name, ours)
        # If the setting itself is also set, the variable probably belongs to another program.
        if meant and not given & {meant, f"{meant}_FILE"}:
            yield name, meant
        elif not meant and (near := _find_similar_name(name, known)):
            yield name, near


def _find_prefixed_variables(name: str, ours: Mapping[str, object]) -> str | None:
    rest = name.upper().removeprefix(_PREFIX).removesuffix("_FILE")
    return rest if name.upper().startswith(_PREFIX) and rest in ours else None


def _find_similar_name(name: str, known: Mapping[str, object]) -> str | None:
    # Single words such as PORT are too similar to variables of other programs.
    letters = {each.replace("_", ""): each for each in known if "_" in each}
    near = get_close_matches(name.upper().replace("_", ""), letters, n=1, cutoff=_MIN_SIMILARITY)
    return letters[near[0]] if near else None


def build_child_environment(**variables: str) -> Mapping[str, str]:
    """Return the environment of this process with additional variables, for a child process.

    An empty WEB_CONCURRENCY is omitted, because gunicorn would parse it as a number.
    """
    given = os.environ | variables
    return {name: value for name, value in given.items() if value or name != "WEB_CONCURRENCY"}


def set_environment(environment: Mapping[str, str]) -> None:
    """Replace the environment of this process."""
    os.environ.clear()
    os.environ.update(environment)


def pop_environment_variable(name: str) -> str | None:
    """Remove and return a variable that child processes must not inherit.

    Return None if the variable is not set.
    """
    return os.environ.pop(name, None)


def list_names_in_environment() -> frozenset[str]:
    """Return the names of settings that are set in the environment of this process."""
    given = os.environ
    return frozenset(
        each.name
        for each in fields(Settings)
        if given.get(each.name.upper())
        or given.get(f"{each.name.upper()}_FILE")
        or _is_rate_limit_off(each, given)
    )


def _is_rate_limit_off(field: Field[Any], environ: Mapping[str, str]) -> bool:
    """Return whether a rate limit is turned off by an empty variable."""
    return (
        get_setting_metadata(field).kind.empty_turns_off and environ.get(field.name.upper()) == ""
    )


def _read_setting_text(field: Field[Any], environ: Mapping[str, str]) -> str:
    variable = field.name.upper()
    text = environ.get(variable, "")
    file_name = environ.get(f"{variable}_FILE", "")
    if not file_name:
        return text
    if get_setting_metadata(field).kind.is_path:
        raise SettingsError(f"{variable}_FILE is not a setting. Set {variable} to the path itself.")
    if text:
        raise SettingsError(f"{variable} and {variable}_FILE are both set. Remove one of them.")
    try:
        found = Path(file_name).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise SettingsError(f"{variable}_FILE names a file that cannot be read.") from error
    if not found:
        raise SettingsError(f"{variable}_FILE names an empty file.")
    return found


def _parse_value(field: Field[Any], kind: SettingKind[Any], text: str) -> Any:
    try:
        return kind.read(text)
    except ValueError as error:
        given = (
            "" if get_setting_metadata(field).source is SettingSource.SECRET else f", not {text!r}"
        )
        refusal = SettingsError(f"{field.name.upper()} must be {kind.allowed}{given}.")
        if isinstance(error, InvalidSettingValueError):
            refusal.detail = str(error)
            refusal.args = (f"{field.name.upper()} must be {kind.allowed}. {error}",)
        raise refusal from error


def _resolve_sqlite_url(url: str, instance_path: Path) -> str:
    from sqlalchemy.engine import make_url  # noqa: PLC0415 - not needed for the default

    parts = make_url(url)
    if parts.drivername != "sqlite":
        return url
    file = instance_path / str(parts.database)
    return parts.set(database=str(file)).render_as_string(hide_password=False)


def _prepare_instance_path(instance_path: Path) -> None:
    try:
        make_instance_directory(instance_path)
    except OSError as error:
        reason = f"{instance_path} cannot be created ({error.strerror})"
        raise SettingsError(f"INSTANCE_PATH must be a directory: {reason}.") from error
    if not os.access(instance_path, os.W_OK | os.X_OK):
        raise SettingsError(f"INSTANCE_PATH must be writable, but {instance_path} is not.")


def _get_generated_secret_key(database_url: str, instance_path: Path) -> str:
    """Return the secret key that was generated on this machine.

    Raise SettingsError for a Postgres database, which requires an explicit SECRET_KEY.
    """
    if not database_url.startswith("sqlite"):
        former = instance_path / "secret_key"
        raise SettingsError(
            "SECRET_KEY must be set with Postgres, to the same value on every host. "
            + (
                f"Set SECRET_KEY_FILE={former} to keep the key that this host generated before."
                if former.exists()
                else "Create a key with `openssl rand -hex 32`."
            )
        )
    return _read_or_create_secret_key(instance_path)


def _read_or_create_secret_key(instance_path: Path) -> str:
    path = instance_path / "secret_key"
    try:
        return read_or_create_file(path, lambda: generate_random_hex(32))
    except OSError as error:
        reason = f"{path} cannot be read or written ({error.strerror})"
        raise SettingsError(f"INSTANCE_PATH must be writable: {reason}.") from error


def _build_listening_url(values: Mapping[str, Any]) -> str:
    host, port = values.get("host", Settings.host), values.get("port", Settings.port)
    # Browsers cannot connect to a wildcard address.
    name = "localhost" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - compared, not bound
    scheme = "https" if "tls_certificate" in values else "http"
    return f"{scheme}://{f'[{name}]' if ':' in name else name}:{port}"
