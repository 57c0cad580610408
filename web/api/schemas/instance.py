"""Schemas of the instance's health, release and settings, generated from the table of settings."""

from collections.abc import Mapping
from dataclasses import Field as Setting
from dataclasses import fields
from typing import Any, Literal

from pydantic import Field, create_model

from domain.core.types.base import Body, Resource
from web.api.schemas.releases import ReleaseRehearsal
from web.releases.rehearsal import Rehearsal
from web.settings.fields import Source, get_setting_metadata
from web.settings.reader import Settings


class Liveness(Resource):
    """Liveness of the process. Signed requests from `gatebell doctor` receive all fields."""

    status: str
    client: str = ""
    forwarded_for: str = ""


class Readiness(Resource):
    """Readiness of the service, with the state of its parts."""

    status: str
    database: str
    clock: str = ""
    git: str = ""


class Version(Resource):
    """Running release."""

    version: str = Field(description="Running release of the API.")
    revision: Literal["gatebell"] = "gatebell"
    gatebell_version: str = Field(description="Version of Gatebell.")
    gatebell_commit: str | None = Field(description="Commit that was built. Null if unknown.")


class Metadata(Version):
    """Running release with additional fields from GitLab's metadata."""

    enterprise: Literal[False] = False


#: Appearance settings for the sign-in page and the messages on all pages, by API name.
_APPEARANCE_SETTINGS = {
    "title": "appearance_title",
    "description": "appearance_description",
    "header_message": "header_message",
    "footer_message": "footer_message",
}
#: Names of settings in GitLab's API, by their names in this service.
_GITLAB_NAMES = {
    "password_min_length": "minimum_password_length",
    "personal_access_token_lifetime_days": "max_personal_access_token_lifetime",
}
_LIVE_SETTINGS = {
    each.name: each for each in fields(Settings) if get_setting_metadata(each).source is Source.LIVE
}
_API_SETTINGS = {
    _GITLAB_NAMES.get(name, name): name
    for name in _LIVE_SETTINGS
    if name not in _APPEARANCE_SETTINGS.values()
}


def _get_field_type(setting: Setting[Any]) -> Any:
    choices = get_setting_metadata(setting).runtime_kind.choices
    return Literal[choices] if choices else setting.type


def _describe_setting(setting: Setting[Any]) -> str:
    known = get_setting_metadata(setting)
    return f"{known.doc} Allowed: {known.runtime_kind.allowed}."


def _create_resource_model(
    name: str, of: Mapping[str, str], *, removed: Mapping[str, str] | None = None
) -> type[Resource]:
    made: dict[str, Any] = {
        each: (
            _get_field_type(_LIVE_SETTINGS[setting]),
            Field(description=_describe_setting(_LIVE_SETTINGS[setting])),
        )
        for each, setting in of.items()
    }
    former: dict[str, Any] = {
        each: (
            _get_field_type(_LIVE_SETTINGS[setting]) | None,
            Field(default=None, deprecated=True),
        )
        for each, setting in (removed or {}).items()
    }
    made |= former
    return create_model(name, __base__=Resource, __doc__="Current values of the settings.", **made)


def _create_body_model(name: str, of: Mapping[str, str]) -> type[Body]:
    made: dict[str, Any] = {
        each: (
            _get_field_type(_LIVE_SETTINGS[setting]) | None,
            Field(default=None, description=_describe_setting(_LIVE_SETTINGS[setting])),
        )
        for each, setting in of.items()
    }
    return create_model(
        name, __base__=Body, __doc__="New values. Omitted settings do not change.", **made
    )


#: API settings that a release removes, with the settings that contain their values.
_REMOVED_SETTINGS = {
    "user_email_lookup_limit": "search_rate_limit",
    "sign_in_text": "appearance_description",
    "help_text": "appearance_description",
}


InstanceSettings = _create_resource_model(
    "InstanceSettings", _API_SETTINGS, removed=_REMOVED_SETTINGS
)
InstanceSettingsOfRelease = create_model(
    "InstanceSettingsOfRelease",
    __base__=InstanceSettings,
    __doc__="Values of the settings after the running release was changed.",
    rehearsal=(
        ReleaseRehearsal,
        Field(description="Effects of changing the running release."),
    ),
)
InstanceSettingsBody = _create_body_model(
    "InstanceSettingsBody", {**_REMOVED_SETTINGS, **_API_SETTINGS}
)
Appearance = _create_resource_model("Appearance", _APPEARANCE_SETTINGS)
AppearanceBody = _create_body_model("AppearanceBody", _APPEARANCE_SETTINGS)
#: API names of settings, by setting name.
API_NAMES_BY_SETTING = {
    name: each for each, name in {**_API_SETTINGS, **_APPEARANCE_SETTINGS}.items()
}


def build_settings_resource(values: Settings, rehearsal: Rehearsal | None = None) -> Resource:
    """Return the settings as a resource, with a rehearsal if the running release was changed."""
    own: dict[str, Any] = {
        each: getattr(values, name) for each, name in {**_API_SETTINGS, **_REMOVED_SETTINGS}.items()
    }
    if rehearsal is None:
        return InstanceSettings(**own)
    own["rehearsal"] = ReleaseRehearsal.from_rehearsal(rehearsal)
    return InstanceSettingsOfRelease(**own)


def build_appearance_resource(values: Settings) -> Resource:
    """Return the appearance settings as a resource."""
    return Appearance(
        **{each: getattr(values, name) for each, name in _APPEARANCE_SETTINGS.items()}
    )


def list_changed_settings(body: Body) -> Mapping[str, str]:
    """Return the values in a body as strings, by setting name."""
    own = {**_REMOVED_SETTINGS, **_API_SETTINGS, **_APPEARANCE_SETTINGS}
    given = body.model_dump(exclude_none=True)
    return {own[name]: _format_value(value) for name, value in given.items()}


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
