"""The reader of a guide: an application, integration or project whose values the guide shows."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from flask import url_for

from blueprints.help.documents import CLIENT_ID, Document, Values
from domain.alerts.integrations.integrations import get_receiver
from domain.core.database.paging import row_id
from domain.core.errors import ForbiddenError, NotFoundError
from domain.oauth.clients.applications import get_any, get_own, newest_own
from domain.oauth.clients.types import ApplicationView
from domain.projects.access import get_project
from web.access.decorators import viewer
from web.extensions import db
from web.http.work import work
from web.pages.list_query import list_query
from web.services import settings

#: Maximum number of applications that a guide offers.
_MOST_OFFERED = 5
_SCOPES = re.compile(r"^- \*\*Scopes\*\*: ([^.]*)\.", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Reader:
    """The reader of a guide."""

    values: Values
    #: Name and URL of the object that the values belong to. None if the guide shows placeholders.
    name: str | None = None
    url: str | None = None
    #: True if the query names something that does not exist or that the reader may not see.
    is_refused: bool = False
    #: Scopes that the guide needs and the application lacks, and the page that adds them.
    missing_scopes: tuple[str, ...] = ()
    edit_url: str | None = None


def find_reader(document: Document) -> Reader:
    """Return the reader of a guide, with the values of the query that the reader may see."""
    query = list_query("application", "project", "integration")
    values = Values(base_url=settings().base_url)
    try:
        return _of_query(query, values, document)
    except (ForbiddenError, NotFoundError):
        return Reader(values=values, is_refused=True)


def _of_query(query: Mapping[str, str], values: Values, document: Document) -> Reader:
    """Return the reader of a query.

    Raise ForbiddenError or NotFoundError if the viewer may not see the values.
    """
    application_id = row_id(query, "application")
    integration_id = row_id(query, "integration")
    project_path = query.get("project", "").strip("/")
    if not project_path.isprintable():  # no path, and databases reject it
        raise NotFoundError
    if application_id is not None:
        return _of_application(application_id, values, document)
    if integration_id is not None:
        return _of_integration(project_path, integration_id, values)
    if project_path:
        return _of_project(project_path, values)
    return Reader(values=values)


def _of_application(application_id: int, values: Values, document: Document) -> Reader:
    application = _application(application_id)
    is_own = application.is_owned_by(viewer().user_id or 0)
    pages = "applications" if is_own else "admin.applications"
    asked = _scopes_of(document)
    return Reader(
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


def _scopes_of(document: Document) -> tuple[str, ...]:
    """Return the scopes that the application needs according to the guide."""
    line = _SCOPES.search(document.text)
    return tuple(re.findall(r"`([a-z_]+)`", line[1])) if line else ()


def _application(application_id: int) -> ApplicationView:
    """Return an application whose page the viewer may see.

    Raise NotFoundError if there is no such application.
    """
    reader = viewer()
    if reader.user_id is None:
        raise NotFoundError
    if reader.is_admin:
        return get_any(application_id, session=db.session())
    return get_own(application_id, owner_id=reader.user_id, session=db.session())


def _of_integration(project_path: str, integration_id: int, values: Values) -> Reader:
    """Return a reader with the values of an integration.

    Raise ForbiddenError if the viewer may not see the integration's credentials.
    """
    project = get_project(project_path, viewer(), session=db.session())
    if not project.can_integrate:
        raise ForbiddenError
    integration = get_receiver(work(), project, integration_id)
    return Reader(
        values=replace(values, integration_url=integration.url, project_path=project.path),
        name=integration.name,
        url=url_for(
            "integration_keys.credentials",
            project_path=project.path,
            integration_id=integration.id,
        ),
    )


def _of_project(project_path: str, values: Values) -> Reader:
    project = get_project(project_path, viewer(), session=db.session())
    return Reader(
        values=replace(values, project_path=project.path),
        name=project.path,
        url=url_for("projects.show_namespace", full_path=project.path),
    )


def offered_applications(document: Document, reader: Reader) -> tuple[ApplicationView, ...]:
    """Return the viewer's newest applications if the guide shows placeholders for one."""
    user_id = viewer().user_id
    if user_id is None or reader.name is not None or CLIENT_ID not in document.text:
        return ()
    return newest_own(user_id, count=_MOST_OFFERED, session=db.session())
