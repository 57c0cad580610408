"""/api/v4/{version,metadata,application}: the running release, settings and appearance."""

from typing import Any

from flask import Blueprint

from domain.core.errors import InvalidParametersError
from domain.core.types.base import Body, Resource
from web.admin.settings import get_settings_in_transaction, store_changed_settings
from web.api.operations import declare_operation
from web.api.schemas.instance import (
    API_NAMES_BY_SETTING,
    Appearance,
    AppearanceBody,
    InstanceSettings,
    InstanceSettingsBody,
    InstanceSettingsOfRelease,
    Metadata,
    Version,
    build_appearance_resource,
    build_settings_resource,
    list_changed_settings,
)
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work
from web.releases.rehearsal import rehearse_change
from web.services import get_current_time, get_settings
from web.version import get_running_build

instance = Blueprint("instance", __name__)


@instance.get("/version")
@declare_operation("instance.version", returns=Version)
def version() -> Version:
    """Show the running release."""
    return Version(**_get_running_version())


@instance.get("/metadata")
@declare_operation("instance.metadata", returns=Metadata)
def metadata() -> Metadata:
    """Show the metadata of the instance."""
    return Metadata(**_get_running_version())


def _get_running_version() -> dict[str, Any]:
    build = get_running_build()
    return {
        "version": f"{get_settings().release}.0",
        "gatebell_version": build.version,
        "gatebell_commit": build.revision or None,
    }


instance_settings = Blueprint("instance_settings", __name__, url_prefix="/application")


@instance_settings.get("/settings")
@declare_operation("instance_settings.show", returns=InstanceSettings)
def show() -> Resource:
    """Show the settings that can be changed while the service is running."""
    return build_settings_resource(get_settings_in_transaction(session=db.session()))


@instance_settings.put("/settings")
@declare_operation(
    "instance_settings.change",
    body=InstanceSettingsBody,
    returns=InstanceSettings | InstanceSettingsOfRelease,
)
def change(body: Body) -> Resource:
    """Change the settings of the instance.

    Every process applies the new settings within a second.
    """
    session = db.session()
    release = list_changed_settings(body).get("release")
    rehearsal = rehearse_change(
        release,
        get_settings_in_transaction(session=session),
        session=session,
        now=get_current_time(),
    )
    _store_setting_changes(body)
    return build_settings_resource(get_settings_in_transaction(session=session), rehearsal)


@instance_settings.get("/appearance")
@declare_operation("instance_settings.show_appearance", returns=Appearance)
def show_appearance() -> Resource:
    """Show the text of the sign-in page and the messages shown on every page."""
    return build_appearance_resource(get_settings_in_transaction(session=db.session()))


@instance_settings.put("/appearance")
@declare_operation("instance_settings.change_appearance", body=AppearanceBody, returns=Appearance)
def change_appearance(body: Body) -> Resource:
    """Change the text of the sign-in page and the messages shown on every page."""
    _store_setting_changes(body)
    return build_appearance_resource(get_settings_in_transaction(session=db.session()))


def _store_setting_changes(body: Body) -> None:
    try:
        store_changed_settings(get_unit_of_work(), list_changed_settings(body))
    except InvalidParametersError as error:
        raise InvalidParametersError(
            [each._replace(field=API_NAMES_BY_SETTING[each.field]) for each in error.problems]
        ) from error
