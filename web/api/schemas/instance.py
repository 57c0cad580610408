"""Schemas of the instance's health, release and settings.

The settings schemas are generated from the table of settings.
"""

from collections.abc import Mapping
from dataclasses import Field as Setting
from dataclasses import fields
from typing import Any, Literal

from pydantic import Field, create_model

from domain.core.types.base import Body, Resource
from web.api.schemas.releases import ReleaseRehearsal
from web.releases.rehearsal import Rehearsal
from web.settings.environment import Settings
from web.settings.fields import SettingSource, get_setting_metadata


class Liveness(Resource):
    """Liveness of the process. Signed requests from `gatebell doctor` receive all fields."""

    status: str
    client: str = ""
    forwarded_for: str = ""


class Readiness(Resource):
    """Readiness of the service, with the states of its database, clock and Git installation."""

    status: str
    database: str
    clock: str = ""
    git: str = ""


class Version(Resource):
    """Running release of the API, and the version of Gatebell."""

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
    each.name: each
    for each in fields(Settings)
    if get_setting_metadata(each).source is SettingSource.LIVE
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
    __doc__="Settings after the running release was changed, with the effects of the change.",
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
    """Return the settings as a resource, with the rehearsal of a release change, if any."""
    own: dict[str, Any] = {
        each: getattr(values, name) for each, name in {**_API_SETTINGS, **_REMOVED_SETTINGS}.items()
    }
    if rehearsal is None:
        return InstanceSettings(**own)
    own["rehearsal"] = ReleaseRehearsal.from_rehearsal(rehearsal)
    return InstanceSettingsOfRelease(**own)


def build_appearance_resource(values: Settings) -> Resource:
    """Return the settings of the sign-in page and of the messages on all pages as a resource."""
    return Appearance(
        **{each: getattr(values, name) for each, name in _APPEARANCE_SETTINGS.items()}
    )


def list_changed_settings(body: Body) -> Mapping[str, str]:
    """Return the settings in a request body as strings, by their names in this service."""
    own = {**_REMOVED_SETTINGS, **_API_SETTINGS, **_APPEARANCE_SETTINGS}
    given = body.model_dump(exclude_none=True)
    return {own[name]: _format_value(value) for name, value in given.items()}


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
