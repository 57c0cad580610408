"""/api/v4/{version,metadata,application}: the running release, settings and appearance."""

from typing import Any

from flask import Blueprint

from domain.core.errors import InvalidParametersError
from domain.core.types.base import Body, Resource
from web.admin.settings import settings_now, store_settings
from web.api.operations import operation
from web.api.schemas.instance import (
    API_NAMES,
    Appearance,
    AppearanceBody,
    InstanceSettings,
    InstanceSettingsBody,
    InstanceSettingsOfRelease,
    Metadata,
    Version,
    changed_settings,
    present_appearance,
    present_settings,
)
from web.build import running_build
from web.extensions import db
from web.http.work import work
from web.releases.rehearsal import rehearse_change
from web.services import now, settings

instance = Blueprint("instance", __name__)


@instance.get("/version")
@operation("instance.version", returns=Version)
def version() -> Version:
    """Show the running release."""
    return Version(**_running())


@instance.get("/metadata")
@operation("instance.metadata", returns=Metadata)
def metadata() -> Metadata:
    """Show the metadata of the instance."""
    return Metadata(**_running())


def _running() -> dict[str, Any]:
    build = running_build()
    return {
        "version": f"{settings().release}.0",
        "gatebell_version": build.version,
        "gatebell_commit": build.revision or None,
    }


instance_settings = Blueprint("instance_settings", __name__, url_prefix="/application")


@instance_settings.get("/settings")
@operation("instance_settings.show", returns=InstanceSettings)
def show() -> Resource:
    """Show the settings that can be changed while the service is running."""
    return present_settings(settings_now(session=db.session()))


@instance_settings.put("/settings")
@operation(
    "instance_settings.change",
    body=InstanceSettingsBody,
    returns=InstanceSettings | InstanceSettingsOfRelease,
)
def change(body: Body) -> Resource:
    """Change the settings of the instance.

    Every process applies the new settings within a second.
    """
    session = db.session()
    release = changed_settings(body).get("release")
    rehearsal = rehearse_change(release, settings_now(session=session), session=session, now=now())
    _store(body)
    return present_settings(settings_now(session=session), rehearsal)


@instance_settings.get("/appearance")
@operation("instance_settings.show_appearance", returns=Appearance)
def show_appearance() -> Resource:
    """Show the texts of the sign-in page and the messages on every page."""
    return present_appearance(settings_now(session=db.session()))


@instance_settings.put("/appearance")
@operation("instance_settings.change_appearance", body=AppearanceBody, returns=Appearance)
def change_appearance(body: Body) -> Resource:
    """Change the texts of the sign-in page and the messages on every page."""
    _store(body)
    return present_appearance(settings_now(session=db.session()))


def _store(body: Body) -> None:
    try:
        store_settings(work(), changed_settings(body))
    except InvalidParametersError as error:
        raise InvalidParametersError(
            [each._replace(field=API_NAMES[each.field]) for each in error.problems]
        ) from error
