"""Schemas of the instance's health, release and settings, generated from the table of settings."""

from collections.abc import Mapping
from dataclasses import Field as Setting
from dataclasses import fields
from typing import Any, Literal

from pydantic import Field, create_model

from domain.core.types.base import Body, Resource
from web.api.schemas.releases import ReleaseRehearsal
from web.releases.rehearsal import Rehearsal
from web.settings.fields import Source, about
from web.settings.reader import Settings


class Liveness(Resource):
    """Liveness of the process. Other fields are only for signed requests of `gatebell doctor`."""

    status: str
    client: str = ""
    forwarded_for: str = ""


class Readiness(Resource):
    """Readiness of the service, with the parts that are not ready."""

    status: str
    database: str
    clock: str = ""
    git: str = ""


class Version(Resource):
    """Running release."""

    version: str = Field(description="Running release of the interfaces.")
    revision: Literal["gatebell"] = "gatebell"
    gatebell_version: str = Field(description="Version of the program.")
    gatebell_commit: str | None = Field(description="Commit of the program. Null if unknown.")


class Metadata(Version):
    """Running release with further fields of GitLab's metadata."""

    enterprise: Literal[False] = False


#: Appearance settings of the sign-in page and of the messages on all pages, by API name.
_APPEARANCE = {
    "title": "appearance_title",
    "description": "appearance_description",
    "header_message": "header_message",
    "footer_message": "footer_message",
}
#: Names in GitLab's API by names of our settings.
_GITLAB = {
    "password_min_length": "minimum_password_length",
    "personal_access_token_lifetime_days": "max_personal_access_token_lifetime",
}
_LIVE = {each.name: each for each in fields(Settings) if about(each).source is Source.LIVE}
_SETTINGS = {_GITLAB.get(name, name): name for name in _LIVE if name not in _APPEARANCE.values()}


def _type_of(setting: Setting[Any]) -> Any:
    choices = about(setting).changeable_to.choices
    return Literal[choices] if choices else setting.type


def _meaning(setting: Setting[Any]) -> str:
    known = about(setting)
    return f"{known.doc} Allowed: {known.changeable_to.allowed}."


def _resource(
    name: str, of: Mapping[str, str], *, removed: Mapping[str, str] | None = None
) -> type[Resource]:
    made: dict[str, Any] = {
        each: (_type_of(_LIVE[setting]), Field(description=_meaning(_LIVE[setting])))
        for each, setting in of.items()
    }
    former: dict[str, Any] = {
        each: (_type_of(_LIVE[setting]) | None, Field(default=None, deprecated=True))
        for each, setting in (removed or {}).items()
    }
    made |= former
    return create_model(name, __base__=Resource, __doc__="The current values.", **made)


def _body(name: str, of: Mapping[str, str]) -> type[Body]:
    made: dict[str, Any] = {
        each: (
            _type_of(_LIVE[setting]) | None,
            Field(default=None, description=_meaning(_LIVE[setting])),
        )
        for each, setting in of.items()
    }
    return create_model(
        name, __base__=Body, __doc__="New values; omitted settings are kept.", **made
    )


#: API settings that a release removes, with the settings that hold their values.
_REMOVED = {
    "user_email_lookup_limit": "search_rate_limit",
    "sign_in_text": "appearance_description",
    "help_text": "appearance_description",
}


InstanceSettings = _resource("InstanceSettings", _SETTINGS, removed=_REMOVED)
InstanceSettingsOfRelease = create_model(
    "InstanceSettingsOfRelease",
    __base__=InstanceSettings,
    __doc__="The values after a change of the running release.",
    rehearsal=(
        ReleaseRehearsal,
        Field(description="Effects of the change of the running release."),
    ),
)
InstanceSettingsBody = _body("InstanceSettingsBody", {**_REMOVED, **_SETTINGS})
Appearance = _resource("Appearance", _APPEARANCE)
AppearanceBody = _body("AppearanceBody", _APPEARANCE)
#: API names by names of settings.
API_NAMES = {name: each for each, name in {**_SETTINGS, **_APPEARANCE}.items()}


def present_settings(values: Settings, rehearsal: Rehearsal | None = None) -> Resource:
    """Present the settings, with a rehearsal after a change of the running release."""
    own: dict[str, Any] = {
        each: getattr(values, name) for each, name in {**_SETTINGS, **_REMOVED}.items()
    }
    if rehearsal is None:
        return InstanceSettings(**own)
    own["rehearsal"] = ReleaseRehearsal.of(rehearsal)
    return InstanceSettingsOfRelease(**own)


def present_appearance(values: Settings) -> Resource:
    """Present the appearance settings."""
    return Appearance(**{each: getattr(values, name) for each, name in _APPEARANCE.items()})


def changed_settings(body: Body) -> Mapping[str, str]:
    """Return the values that a body sets as texts, by names of settings."""
    own = {**_REMOVED, **_SETTINGS, **_APPEARANCE}
    given = body.model_dump(exclude_none=True)
    return {own[name]: _written(value) for name, value in given.items()}


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
