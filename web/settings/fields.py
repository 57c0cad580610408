"""How `web/settings/table.py` writes a setting down: its default, what it may be, what it means."""

from dataclasses import Field, dataclass, field
from enum import Enum
from typing import Any, TypeVar, cast

from web.settings import kinds

Value = TypeVar("Value")


class Source(Enum):
    """Where a setting comes from."""

    ENVIRONMENT = "environment"
    #: The environment, or a file that NAME_FILE names; never shown.
    SECRET = "secret"  # noqa: S105 - a word, not a secret
    #: The environment, or `flask settings set` while the service runs.
    LIVE = "live"


@dataclass(frozen=True)
class About:
    """What is known of a setting besides its value."""

    kind: kinds.Kind[Any]
    doc: str
    source: Source
    #: The default in words, where it is not a constant.
    default_in_words: str = ""
    #: What a change while the service runs may be, where that is less than the environment may say.
    narrower: kinds.Kind[Any] | None = None

    @property
    def changeable_to(self) -> kinds.Kind[Any]:
        """What it may be changed to while the service runs."""
        return self.narrower or self.kind


def fixed(default: Value, kind: kinds.Kind[Value], doc: str) -> Value:
    """Make a setting that is read from the environment at the start."""
    about = About(kind, doc, Source.ENVIRONMENT)
    return field(default=default, metadata={"about": about})


def live(
    default: Value,
    kind: kinds.Kind[Value],
    doc: str,
    *,
    narrower: kinds.Kind[Value] | None = None,
) -> Value:
    """Make a setting that may change while the service runs, if wanted within narrower bounds."""
    about = About(kind, doc, Source.LIVE, narrower=narrower)
    return field(default=default, metadata={"about": about})


def secret(default: Value, kind: kinds.Kind[Value], doc: str) -> Value:
    """Make a setting that is never shown."""
    about = About(kind, doc, Source.SECRET)
    return field(default=default, repr=False, metadata={"about": about})


def made(default_in_words: str, kind: kinds.Kind[Value], doc: str) -> Value:
    """Make a setting whose default is worked out at the start."""
    about = About(kind, doc, Source.ENVIRONMENT, default_in_words)
    return cast("Value", field(metadata={"about": about}))


def made_secret(default_in_words: str, kind: kinds.Kind[Value], doc: str) -> Value:
    """Make a setting that is never shown and whose default is worked out at the start."""
    about = About(kind, doc, Source.SECRET, default_in_words)
    return cast("Value", field(repr=False, metadata={"about": about}))


def about(setting: Field[Any]) -> About:
    """Return what is known of a setting."""
    return cast("About", setting.metadata["about"])
