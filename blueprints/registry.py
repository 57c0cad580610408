"""The container registry: its project page, tokens for its clients, and its notifications."""

from collections.abc import Callable, Iterable

from flask import Response, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.core.database.paging import Page
from domain.core.errors import InvalidError
from domain.projects.views import ProjectView
from domain.registry import actions
from domain.registry import repositories as domain
from domain.registry.access import RegistryCredentialsError, allowed_access, parse_requested_scopes
from domain.registry.client import RegistryRefusedError, RegistryUnavailableError
from domain.registry.notifications import LARGEST_BODY, parse_envelope, record_events
from domain.registry.repositories import root_name
from domain.registry.tokens import EXAMPLE_HOST, SERVICE, RegistryToken
from web.access.decorators import checks_registry_secret, open_to_anyone, permitted
from web.access.rate_limits import by_address
from web.api.description.described import FORM, HTML, JSON, REGISTRY, Caller, Description
from web.api.schemas.registry import (
    RegistryEnvelope,
    RegistryTokenForm,
    RegistryTokenQuery,
    RegistryTokenResponse,
)
from web.extensions import db
from web.http.endpoints import ErrorFormat, MachineBlueprint, PageBlueprint
from web.http.errors import refusal
from web.http.json_responses import json_response
from web.http.request_bodies import check_media_type, read_bounded
from web.http.work import work
from web.metrics import count_registry_events
from web.pages.form_errors import refusals_shown
from web.pages.list_query import CURSORS, asked_slice, list_query, page_links, page_size
from web.registry import (
    NO_CREDENTIALS,
    RegistryUser,
    UnknownTokenError,
    basic_password,
    certificate_bundle,
    check_notification_secret,
    count_failure,
    issue_token,
    shown_configuration,
    user_with,
)
from web.services import now, registry_policy

registry_pages = PageBlueprint(
    "registry_pages", __name__, url_prefix="/<names:project_path>/-/container_registry"
)
registry_tokens = MachineBlueprint(
    "registry_tokens", __name__, url_prefix="/jwt", errors=ErrorFormat.REGISTRY
)
registry_notifications = MachineBlueprint(
    "registry_notifications",
    __name__,
    url_prefix="/api/v4/container_registry_event",
    errors=ErrorFormat.MESSAGE,
)
#: Maximum size of a form in bytes.
_LONGEST_FORM = 16_383
#: Error statuses of token requests.
_REFUSALS = (400, 401, 403, 429)


@registry_pages.get("")
@permitted("registry_repositories.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """List the repositories, and show how to sign in and how to connect a registry."""
    list_query(*CURSORS)
    found = domain.repositories_page(project.id, asked_slice(), session=db.session())
    host = registry_policy().host
    return render_template(
        "registry/index.html",
        project=project,
        page=page_links(found),
        is_connected=host is not None,
        host=host or EXAMPLE_HOST,
        image=root_name(project.path),
        ready=shown_configuration() if project.can_maintain else None,
    )


@registry_pages.get("/<int:repository_id>")
@permitted("registry_repositories.tags")
def show(project: ProjectView, repository_id: int) -> ResponseReturnValue:
    """List the tags of a repository."""
    given, session = list_query("before"), db.session()
    repository = domain.get_repository(repository_id, project_id=project.id, session=session)
    found = domain.tags_after(
        repository, given.get("before", ""), limit=page_size(), session=session
    )
    last = found.tags[-1].name if found.has_more else None
    return render_template(
        "registry/show.html",
        project=project,
        repository=repository,
        page=page_links(Page(items=found.tags, next_before=last)),
        host=registry_policy().host or EXAMPLE_HOST,
        may_delete=_may_delete(project) and not repository.is_going,
    )


def _may_delete(project: ProjectView) -> bool:
    """Return whether the page has delete buttons, which need a connected registry."""
    return project.can_maintain and not project.is_archived and bool(registry_policy().api_url)


@registry_pages.post("/<int:repository_id>/delete")
@permitted("registry_repositories.delete")
def delete(project: ProjectView, repository_id: int) -> ResponseReturnValue:
    """Delete a repository with all its images in the background."""
    repository = domain.get_repository(repository_id, project_id=project.id, session=db.session())
    with refusals_shown(InvalidError):
        actions.delete_repository(work(), project, repository_id)
        flash(f"{repository.path} and all its images are being deleted.", "info")
    return redirect(url_for("registry_pages.index", project_path=project.path))


@registry_pages.post("/<int:repository_id>/tags/<tag_name>/delete")
@permitted("registry_repositories.delete_tag")
def delete_tag(project: ProjectView, repository_id: int, tag_name: str) -> ResponseReturnValue:
    """Delete a tag of a repository immediately."""
    try:
        actions.delete_tag(work(), project, repository_id, tag_name)
    except (RegistryUnavailableError, RegistryRefusedError) as error:
        flash(f"The tag {tag_name} was not deleted. {error}", "error")
    else:
        flash(f"The tag {tag_name} was deleted.")
    return redirect(
        url_for("registry_pages.show", project_path=project.path, repository_id=repository_id)
    )


@registry_tokens.get("/auth")
@Description(
    name="registry.token",
    tag=REGISTRY,
    caller=Caller.REGISTRY_CLIENT,
    query=RegistryTokenQuery,
    returns=RegistryTokenResponse,
    errors=_REFUSALS,
)
@open_to_anyone
@by_address
def issue() -> Response:
    """Issue a token for the credentials of Basic authentication, or for anonymous pulls."""
    _check_service(request.args.get("service", ""))
    scopes = request.args.getlist("scope")
    return _answer(basic_password, scopes, lambda token: token.as_json())


@registry_tokens.post("/auth")
@Description(
    name="registry.token_for_form",
    tag=REGISTRY,
    body=RegistryTokenForm,
    accepts=(FORM,),
    returns=RegistryTokenResponse,
    errors=(*_REFUSALS, 408, 413),
)
@open_to_anyone.but(writes=False)
@by_address
def issue_for_form() -> Response:
    """Issue a token for the credentials of a form."""
    request.max_content_length = _LONGEST_FORM
    form = request.form
    _check_service(form.get("service", ""))
    if form.get("grant_type") != "password":
        message = "`grant_type` must be password. Refresh tokens are not supported."
        raise InvalidError(message, field="grant_type")
    scopes = form.getlist("scope")
    return _answer(
        lambda: form.get("password", ""),
        scopes,
        lambda token: {**token.as_json(), "scope": " ".join(scopes)},
    )


def _answer(
    password: Callable[[], str | None],
    scopes: Iterable[str],
    as_json: Callable[[RegistryToken], dict[str, str | int]],
) -> Response:
    try:
        user = user_with(password())
    except UnknownTokenError as error:
        count_failure()
        # The error is returned and not raised, so that the count is stored.
        return refusal(error)
    response = json_response(as_json(_token_for(user, scopes)))
    response.headers["Cache-Control"] = "no-store"
    return response


def _token_for(user: RegistryUser, scopes: Iterable[str]) -> RegistryToken:
    access = allowed_access(parse_requested_scopes(scopes), user.requester, session=db.session())
    if not access and not user.name:
        raise RegistryCredentialsError(NO_CREDENTIALS)
    return issue_token(access, subject=user.name)


def _check_service(name: str) -> None:
    if name != SERVICE:
        message = f"`service` is unknown. Set auth.token.service of the registry to {SERVICE}."
        raise InvalidError(message, field="service")


@registry_tokens.get("/certificates")
@open_to_anyone
@by_address
def certificates() -> Response:
    """Return the certificates that registries have to trust (`rootcertbundle`), in PEM format."""
    response = Response(certificate_bundle(), mimetype="application/x-pem-file")
    response.headers["Cache-Control"] = "no-cache"
    return response


@registry_notifications.post("/events")
@Description(
    name="registry.notification",
    tag=REGISTRY,
    caller=Caller.REGISTRY,
    body=RegistryEnvelope,
    accepts=(JSON,),
    content_type=HTML,
    errors=(400, 401, 408, 413, 415),
)
@checks_registry_secret
def receive() -> Response:
    """Store events of the container registry.

    Events of unknown projects are only counted.
    """
    check_notification_secret()
    received = read_bounded(LARGEST_BODY)
    check_media_type()
    received.check()
    envelope = parse_envelope(received.content)
    outcomes = record_events(envelope.events, session=db.session(), now=now())
    count_registry_events({**outcomes, "ignored": envelope.left_out})
    return Response(status=200)
