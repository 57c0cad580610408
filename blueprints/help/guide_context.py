"""Values that guides show, taken from the reader's application, integration or project."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from flask import url_for

from blueprints.help.documents import CLIENT_ID_PLACEHOLDER, Document, GuideValues
from domain.alerts.integrations.integrations import get_receiving_integration
from domain.core.database.pagination import get_row_id
from domain.core.errors import ForbiddenError, NotFoundError
from domain.oauth.clients.applications import (
    get_any_application,
    get_own_application,
    list_newest_own_applications,
)
from domain.oauth.clients.types import ApplicationView
from domain.projects.access import get_project
from web.access.decorators import get_request_viewer
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work
from web.pages.list_query import get_list_query
from web.services import get_settings

#: Maximum number of applications that a guide offers.
_MAX_OFFERED_APPLICATIONS = 5
_SCOPES_PATTERN = re.compile(r"^- \*\*Scopes\*\*: ([^.]*)\.", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class GuideContext:
    """The values and links that a guide shows to its reader."""

    values: GuideValues
    #: Name and URL of the object that the values belong to. None if the guide shows placeholders.
    name: str | None = None
    url: str | None = None
    #: True if the query selects an object that does not exist or that the reader may not see.
    is_unavailable: bool = False
    #: Scopes that the guide needs but the application does not have, and the page that adds them.
    missing_scopes: tuple[str, ...] = ()
    edit_url: str | None = None


def find_guide_context(document: Document) -> GuideContext:
    """Return the values that a guide shows to the current user.

    The query selects an application, an integration or a project. The values contain only data that
    the user may see.
    """
    query = get_list_query("application", "project", "integration")
    values = GuideValues(base_url=get_settings().base_url)
    try:
        return _find_context_for_query(query, values, document)
    except (ForbiddenError, NotFoundError):
        return GuideContext(values=values, is_unavailable=True)


def _find_context_for_query(
    query: Mapping[str, str], values: GuideValues, document: Document
) -> GuideContext:
    """Return the guide values for the object that the query selects.

    Raise ForbiddenError or NotFoundError if the viewer is not allowed to see the object.
    """
    application_id = get_row_id(query, "application")
    integration_id = get_row_id(query, "integration")
    project_path = query.get("project", "").strip("/")
    if not project_path.isprintable():  # not a valid path, and databases reject it
        raise NotFoundError
    if application_id is not None:
        return _build_application_context(application_id, values, document)
    if integration_id is not None:
        return _build_integration_context(project_path, integration_id, values)
    if project_path:
        return _build_project_context(project_path, values)
    return GuideContext(values=values)


def _build_application_context(
    application_id: int, values: GuideValues, document: Document
) -> GuideContext:
    application = _get_visible_application(application_id)
    is_own = application.is_owned_by(get_request_viewer().user_id or 0)
    pages = "applications" if is_own else "admin.applications"
    asked = _find_guide_scopes(document)
    return GuideContext(
        values=replace(
            values,
            client_id=application.application_id,
            redirect_uri=next(iter(application.redirect_uris), None),
        ),
        name=application.name,
        url=url_for(f"{pages}.show", application_id=application.id),
        missing_scopes=tuple(each for each in asked if each not in application.scopes),
        edit_url=url_for(f"{pages}.edit", application_id=application.id),
    )


def _find_guide_scopes(document: Document) -> tuple[str, ...]:
    """Return the scopes that the application needs according to the guide."""
    line = _SCOPES_PATTERN.search(document.text)
    return tuple(re.findall(r"`([a-z_]+)`", line[1])) if line else ()


def _get_visible_application(application_id: int) -> ApplicationView:
    """Return an application whose page the viewer may see.

    Raise NotFoundError if there is no such application.
    """
    reader = get_request_viewer()
    if reader.user_id is None:
        raise NotFoundError
    if reader.is_admin:
        return get_any_application(application_id, session=db.session())
    return get_own_application(application_id, owner_id=reader.user_id, session=db.session())


def _build_integration_context(
    project_path: str, integration_id: int, values: GuideValues
) -> GuideContext:
    """Return the guide values for an integration.

    Raise ForbiddenError if the viewer is not allowed to see the integration's credentials.
    """
    project = get_project(project_path, get_request_viewer(), session=db.session())
    if not project.can_manage_integrations:
        raise ForbiddenError
    integration = get_receiving_integration(get_unit_of_work(), project, integration_id)
    return GuideContext(
        values=replace(values, integration_url=integration.url, project_path=project.path),
        name=integration.name,
        url=url_for(
            "integration_keys.credentials",
            project_path=project.path,
            integration_id=integration.id,
        ),
    )


def _build_project_context(project_path: str, values: GuideValues) -> GuideContext:
    project = get_project(project_path, get_request_viewer(), session=db.session())
    return GuideContext(
        values=replace(values, project_path=project.path),
        name=project.path,
        url=url_for("projects.show_namespace", full_path=project.path),
    )


def find_offered_applications(
    document: Document, reader: GuideContext
) -> tuple[ApplicationView, ...]:
    """Return the viewer's newest applications if the guide has placeholders for an application."""
    user_id = get_request_viewer().user_id
    if user_id is None or reader.name is not None or CLIENT_ID_PLACEHOLDER not in document.text:
        return ()
    return list_newest_own_applications(
        user_id, count=_MAX_OFFERED_APPLICATIONS, session=db.session()
    )
