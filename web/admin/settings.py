"""Functions that administrators use to view and change settings.

The actions are defined here and not in the domain, because only `web` has access to the settings.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, replace
from enum import Enum
from typing import Any

from sqlalchemy import delete
from sqlalchemy.orm import Session

from domain.access.actions import action
from domain.access.actor import UnitOfWork
from domain.audit.events import EventKind
from domain.core.database.bulk_statements import build_session_insert
from domain.core.errors import InvalidParametersError, InvalidValue
from domain.core.types.base import get_column_values
from domain.oauth.personal_tokens.lifetimes import assign_expiry_to_token_batch
from models import InstanceSetting
from web.pages.templating import format_file_size, format_seconds
from web.services import get_services
from web.settings.environment import (
    Settings,
    SettingsError,
    get_changeable_setting,
    list_names_in_environment,
    parse_setting_value,
)
from web.settings.fields import SettingMetadata, SettingSource, get_setting_metadata
from web.settings.policies.tokens import build_token_lifetimes
from web.settings.sections import list_sections
from web.settings.stored_settings import read_current_settings

#: Names of feature flags, which the settings page shows in their own group.
_FEATURE_FLAGS = ("oauth2_device_grant_flow", "generic_alert_fingerprinting")
_FEATURE_FLAGS_TITLE = "Feature flags"
#: Spellings in titles, by word in setting names.
_SPELLINGS = {
    "api": "API", "ca": "CA", "dpop": "DPoP", "git": "Git", "https": "HTTPS", "id": "ID",
    "json": "JSON", "min": "minimum", "oauth": "OAuth", "oauth2": "OAuth",
    "ratelimit": "rate limit", "sqlite": "SQLite", "tls": "TLS", "uri": "URI", "uris": "URIs",
    "url": "URL",
}  # fmt: skip
#: Pattern for large numbers that are not part of a date, an address or a port.
_LARGE_NUMBER = re.compile(r"(?<![\w.:/-])[0-9]{4,}(?![\w:/-])")
_UNIT_SUFFIXES = frozenset({"seconds", "ms", "bytes", "kib", "days"})
_LARGER_UNIT_SECONDS = (86_400, 3_600, 60)
#: Settings that determine whether access tokens can exist without an expiry date.
_TOKEN_EXPIRY_SETTINGS = frozenset({"release", "personal_access_token_lifetime_days"})


class ValueSource(Enum):
    """Source of the current value. The enum's value is displayed to users."""

    DEFAULT = "Default"
    ENVIRONMENT = "Environment"
    CHANGED_HERE = "Changed here"


@dataclass(frozen=True, kw_only=True)
class SettingView:
    """A setting, as displayed to administrators."""

    name: str
    title: str
    doc: str
    #: Description of the allowed values.
    allowed: str
    #: Description of the current value. For a secret, it shows only whether the secret is set.
    words: str
    #: Current value as text, or an empty string for a secret.
    text: str
    #: Description of the value that applies if no value is stored.
    words_without_change: str
    source: ValueSource
    is_secret: bool
    is_live: bool
    may_be_empty: bool
    choices: tuple[str, ...]
    unit: str | None
    is_yes_or_no: bool
    is_long: bool
    has_release_dates: bool

    @property
    def environment_variable(self) -> str:
        """The environment variable of the setting: the setting's name in uppercase."""
        return self.name.upper()

    @property
    def allowed_values_text(self) -> str:
        """Allowed values as a sentence."""
        return f"{self.allowed[0].upper()}{self.allowed[1:]}."

    @property
    def has_stored_value(self) -> bool:
        """True if a stored value replaces the environment's value."""
        return self.source is ValueSource.CHANGED_HERE

    def parse_text(self, text: str) -> Any:
        """Parse a value of the setting.

        Raise ValueError with a message for users if the value is invalid.
        """
        if not text and not self.may_be_empty:
            raise ValueError(f"{self.title} must be {self.allowed}.")
        try:
            return parse_setting_value(self.name, text)
        except SettingsError as error:
            message = f"{self.title} must be {self.allowed}. {error.detail}".strip()
            raise ValueError(message) from error


@dataclass(frozen=True, kw_only=True)
class SectionView:
    """A section of the settings page, with a key, a title and settings."""

    key: str
    title: str
    settings: tuple[SettingView, ...]

    @property
    def changed_count(self) -> int:
        """Number of settings with a stored value."""
        return sum(each.has_stored_value for each in self.settings)

    @property
    def live_settings(self) -> tuple[SettingView, ...]:
        """Settings that can change at runtime."""
        return tuple(each for each in self.settings if each.is_live)


def list_section_views(
    environment: Settings, stored_values: Mapping[str, str]
) -> tuple[SectionView, ...]:
    """Return all settings by section, feature flags first."""
    given = list_names_in_environment()
    flags: list[SettingView] = []
    found: list[SectionView] = []
    for section in list_sections():
        views = [_build_view(each, environment, stored_values, given) for each in section.settings]
        flags += [view for view in views if view.name in _FEATURE_FLAGS]
        others = tuple(view for view in views if view.name not in _FEATURE_FLAGS)
        found.append(SectionView(key=section.key, title=section.title, settings=others))
    key = _FEATURE_FLAGS_TITLE.lower().replace(" ", "-")
    return (SectionView(key=key, title=_FEATURE_FLAGS_TITLE, settings=tuple(flags)), *found)


def filter_sections(section_views: Iterable[SectionView], search: str) -> tuple[SectionView, ...]:
    """Return the settings that contain all words of a search.

    The search covers the name, the title, the description and the section.
    """
    words = search.casefold().split()
    kept = (
        replace(
            section,
            settings=tuple(
                each
                for each in section.settings
                if all(word in _build_search_text(section, each) for word in words)
            ),
        )
        for section in section_views
    )
    return tuple(section for section in kept if section.settings)


def _build_search_text(section: SectionView, setting: SettingView) -> str:
    return (
        f"{section.title} {setting.title} {setting.environment_variable} {setting.doc}".casefold()
    )


def _build_view(
    setting: Field[Any],
    environment: Settings,
    stored_values: Mapping[str, str],
    given: frozenset[str],
) -> SettingView:
    known = get_setting_metadata(setting)
    at_start = getattr(environment, setting.name)
    change = _find_stored_value(setting.name, stored_values)
    value = at_start if change is None else change
    source = ValueSource.ENVIRONMENT if setting.name in given else ValueSource.DEFAULT
    is_secret = known.source is SettingSource.SECRET
    return SettingView(
        **get_column_values(known.kind, SettingView)
        | {
            "allowed": _LARGE_NUMBER.sub(
                lambda number: f"{int(number[0]):,}", known.runtime_kind.allowed
            ),
            "may_be_empty": known.kind.may_be_empty or setting.default == "",
        },
        name=setting.name,
        title=format_setting_title(setting.name),
        doc=known.doc,
        words=_format_value(value, known),
        text=_format_visible_part(value, known) if is_secret else _format_raw_value(value),
        words_without_change=_format_value(at_start, known),
        source=source if change is None else ValueSource.CHANGED_HERE,
        is_secret=is_secret,
        is_live=known.source is SettingSource.LIVE,
    )


def _find_stored_value(name: str, stored_values: Mapping[str, str]) -> Any:
    """Return the stored value that replaces the environment's value, or None."""
    try:
        return parse_setting_value(name, stored_values[name]) if name in stored_values else None
    except SettingsError:
        return None  # The value was stored by an older release and is no longer allowed.


def format_setting_title(name: str) -> str:
    """Return the title of a setting: `ID token lifetime` for `id_token_lifetime_seconds`."""
    words = name.split("_")
    if words[-1] in _UNIT_SUFFIXES:
        words = words[:-1]
    text = " ".join(_SPELLINGS.get(word, word) for word in words)
    text = text.replace(" keep", " retention").replace("refused", "rejected")
    return text[0].upper() + text[1:]


def _format_visible_part(value: Any, setting_metadata: SettingMetadata) -> str:
    """Return the part of a secret setting that may be displayed, or an empty string."""
    return setting_metadata.kind.shown(value) if setting_metadata.kind.shown else ""


def _format_raw_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _format_value(value: Any, setting_metadata: SettingMetadata) -> str:
    if setting_metadata.source is SettingSource.SECRET:
        return _format_visible_part(value, setting_metadata) or ("Set" if value else "Not set")
    if isinstance(value, bool):
        return "On" if value else "Off"
    if isinstance(value, int):
        # A number without a unit, such as a port, has no thousands separators.
        return (
            _format_quantity(value, setting_metadata.kind.unit)
            if setting_metadata.kind.unit
            else str(value)
        )
    return str(value) or "None"


def _format_quantity(value: int, unit: str) -> str:
    """Return a number with its unit and, if helpful, converted to a larger unit."""
    words = f"{value:,} {unit[:-1] if value == 1 else unit}".strip()
    if unit == "bytes" and value >= 1_024:  # noqa: PLR2004 - a KiB
        return f"{words} ({format_file_size(value)})"
    if unit == "seconds" and any(
        value >= each and value % each == 0 for each in _LARGER_UNIT_SECONDS
    ):
        return f"{words} ({format_seconds(value)})"
    return words


def get_settings_in_transaction(*, session: Session) -> Settings:
    """Return the current settings, including changes stored in this transaction.

    After a commit, processes apply the stored settings within a second.
    """
    return read_current_settings(get_services().live_settings.environment_settings, session=session)


@action("instance_settings.change")
def store_setting_text(work: UnitOfWork, name: str, text: str) -> dict[str, Any]:
    """Store the value of a setting in the database.

    Every process applies the value within a second. Raise SettingsError if the setting cannot be
    changed or the value is invalid.
    """
    setting = get_changeable_setting(name)
    value = parse_setting_value(name, text)
    before = getattr(get_settings_in_transaction(session=work.session), setting.name)
    given = {"value": text, "updated_at": work.now}
    insert = build_session_insert(InstanceSetting, session=work.session).values(
        name=setting.name, **given
    )
    work.session.execute(
        insert.on_conflict_do_update(index_elements=[InstanceSetting.name], set_=given)
    )
    _record_and_apply_change(work, setting.name, before=before, after=value)
    return {"name": setting.name.upper(), "value": value}


@action("instance_settings.change")
def reset_setting(work: UnitOfWork, name: str) -> dict[str, Any]:
    """Delete a stored value, so that the environment's value or the default applies again.

    Raise SettingsError if the setting cannot be changed.
    """
    setting = get_changeable_setting(name)
    before = getattr(get_settings_in_transaction(session=work.session), setting.name)
    gone = work.session.scalar(
        delete(InstanceSetting)
        .where(InstanceSetting.name == setting.name)
        .returning(InstanceSetting.name)
    )
    value = getattr(get_services().live_settings.environment_settings, setting.name)
    if gone is not None:
        source = "to the environment or default"
        _record_and_apply_change(work, setting.name, before=before, after=value, back=source)
    return {"name": setting.name.upper(), "value": value}


def _record_and_apply_change(
    work: UnitOfWork, name: str, *, before: object, after: object, **more: str
) -> None:
    """Record a change with its old and new values, and update stored data that the setting affects.

    The values can be recorded, because settings that can change at runtime are never secret. Only
    one batch of data is updated here. The worker updates the rest.
    """
    details = {"old": before, "new": after, **more}
    work.record_audit_event(EventKind.SETTING_CHANGED, subject=name, details=details)
    if name in _TOKEN_EXPIRY_SETTINGS:
        lifetimes = build_token_lifetimes(get_settings_in_transaction(session=work.session))
        assign_expiry_to_token_batch(lifetimes, session=work.session, now=work.now)


def store_changed_settings(work: UnitOfWork, texts: Mapping[str, str]) -> None:
    """Store the given values, except values that equal the current values.

    Raise InvalidParametersError with the names of all settings that have invalid values.
    """
    current = get_settings_in_transaction(session=work.session)
    values = parse_changes(texts)
    for name, value in values.items():
        if value != getattr(current, name):
            store_setting_text(work, name, texts[name])


def parse_changes(texts: Mapping[str, str]) -> Mapping[str, Any]:
    """Parse new values and return them by name.

    Raise InvalidParametersError with the names of all settings that have invalid values.
    """
    values: dict[str, Any] = {}
    problems: list[InvalidValue] = []
    for name, text in texts.items():
        setting = get_changeable_setting(name)
        kind = get_setting_metadata(setting).runtime_kind
        try:
            values[name] = parse_setting_value(name, text)
        except SettingsError as error:
            reason = f"must be {kind.allowed}. {error.detail}".rstrip(". ")
            problems.append(InvalidValue(field=name, reason=reason))
        if not text and not (kind.may_be_empty or setting.default == ""):
            problems.append(InvalidValue(field=name, reason="is empty"))
    if problems:
        raise InvalidParametersError(problems)
    return values
