"""Fields of settings for `web/settings/definitions.py`: default, kind and description."""

from dataclasses import Field, dataclass, field
from enum import Enum
from typing import Any, TypeVar, cast

from web.settings import kinds

Value = TypeVar("Value")


class SettingSource(Enum):
    """Source of a setting. The variable NAME_FILE may name a file that contains the value."""

    ENVIRONMENT = "environment"
    #: Source for secrets, which are read from the environment and never shown.
    SECRET = "secret"  # noqa: S105 - a word, not a secret
    #: Source for settings that are read from the environment or changed at runtime with `gatebell
    #: settings set`.
    LIVE = "live"


@dataclass(frozen=True)
class SettingMetadata:
    """Allowed values, description and source of a setting."""

    kind: kinds.SettingKind[Any]
    doc: str
    source: SettingSource
    #: Description of the default, if it is not a constant.
    default_in_words: str = ""
    #: Kind with narrower bounds for changes at runtime, or None if the bounds are the same.
    narrower: kinds.SettingKind[Any] | None = None

    @property
    def runtime_kind(self) -> kinds.SettingKind[Any]:
        """Kind of values that are allowed at runtime."""
        return self.narrower or self.kind


def define_fixed_setting(default: Value, kind: kinds.SettingKind[Value], doc: str) -> Value:
    """Define a setting that is only read at startup."""
    about = SettingMetadata(kind, doc, SettingSource.ENVIRONMENT)
    return field(default=default, metadata={"about": about})


def define_live_setting(
    default: Value,
    kind: kinds.SettingKind[Value],
    doc: str,
    *,
    narrower: kinds.SettingKind[Value] | None = None,
) -> Value:
    """Define a setting that can change at runtime, optionally within narrower bounds."""
    about = SettingMetadata(kind, doc, SettingSource.LIVE, narrower=narrower)
    return field(default=default, metadata={"about": about})


def define_switch(doc: str, *, on: bool) -> bool:
    """Define a setting that is on or off and can change at runtime."""
    return define_live_setting(on, kinds.build_yes_or_no_kind(), doc)


def define_secret(default: Value, kind: kinds.SettingKind[Value], doc: str) -> Value:
    """Define a secret setting, which is never shown."""
    about = SettingMetadata(kind, doc, SettingSource.SECRET)
    return field(default=default, repr=False, metadata={"about": about})


def define_computed_setting(
    default_in_words: str, kind: kinds.SettingKind[Value], doc: str
) -> Value:
    """Define a setting with a computed default."""
    about = SettingMetadata(kind, doc, SettingSource.ENVIRONMENT, default_in_words)
    return cast("Value", field(metadata={"about": about}))


def define_computed_secret(
    default_in_words: str, kind: kinds.SettingKind[Value], doc: str
) -> Value:
    """Define a secret setting with a computed default."""
    about = SettingMetadata(kind, doc, SettingSource.SECRET, default_in_words)
    return cast("Value", field(repr=False, metadata={"about": about}))


def get_setting_metadata(setting: Field[Any]) -> SettingMetadata:
    """Return the metadata from a setting's dataclass field."""
    return cast("SettingMetadata", setting.metadata["about"])
