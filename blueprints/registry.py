"""The container registry: project page, tokens for clients, and notifications."""

from collections.abc import Callable, Iterable

from flask import Response, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.core.database.pagination import KeysetPage
from domain.core.errors import InvalidError
from domain.projects.views import ProjectView
from domain.registry import actions
from domain.registry import repositories as domain
from domain.registry.access import (
    InvalidRegistryCredentialsError,
    find_allowed_access,
    parse_requested_scopes,
)
from domain.registry.client import RegistryRequestError, RegistryUnavailableError
from domain.registry.notifications import MAX_BODY_BYTES, parse_envelope, store_events
from domain.registry.repositories import find_root_repository_name
from domain.registry.tokens import HOST_PLACEHOLDER, REGISTRY_SERVICE, RegistryToken
from web.access.decorators import checks_registry_secret, open_to_anyone, permission_required
from web.access.rate_limits import limit_oauth_by_address
from web.api.openapi.view_descriptions import (
    FORM,
    HTML,
    JSON,
    REGISTRY,
    Caller,
    ViewDescription,
)
from web.api.schemas.registry import (
    RegistryEnvelope,
    RegistryTokenForm,
    RegistryTokenQuery,
    RegistryTokenResponse,
)
from web.extensions import db
from web.http.endpoints import ApiClientBlueprint, ErrorFormat, PageBlueprint
from web.http.errors import build_error_response
from web.http.json_responses import build_json_response
from web.http.request_bodies import check_media_type, read_limited_body
from web.http.unit_of_work import get_unit_of_work
from web.metrics import count_registry_events
from web.pages.form_errors import show_errors_on_next_page
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    build_page_links,
    get_list_query,
    get_page_size,
    get_requested_keyset_range,
)
from web.registry import (
    NO_CREDENTIALS_MESSAGE,
    InvalidRegistryTokenError,
    RegistryUser,
    build_certificate_bundle,
    build_visible_configuration,
    check_notification_secret,
    count_wrong_registry_token,
    find_basic_password,
    get_registry_user,
    issue_registry_token,
)
from web.services import get_current_time, get_registry_policy

registry_pages = PageBlueprint(
    "registry_pages", __name__, url_prefix="/<names:project_path>/-/container_registry"
)
registry_tokens = ApiClientBlueprint(
    "registry_tokens", __name__, url_prefix="/jwt", errors=ErrorFormat.REGISTRY
)
registry_notifications = ApiClientBlueprint(
    "registry_notifications",
    __name__,
    url_prefix="/api/v4/container_registry_event",
    errors=ErrorFormat.MESSAGE,
)
#: Maximum size of a form in bytes.
_MAX_FORM_BYTES = 16_383
#: Error statuses of token requests.
_ERROR_STATUSES = (400, 401, 403, 429)


@registry_pages.get("")
@permission_required("registry_repositories.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """List the repositories, with instructions for signing in and connecting a registry."""
    get_list_query(*CURSOR_PARAMETERS)
    found = domain.get_repository_page(
        project.id, get_requested_keyset_range(), session=db.session()
    )
    host = get_registry_policy().host
    return render_template(
        "registry/index.html",
        project=project,
        page=build_page_links(found),
        is_connected=host is not None,
        host=host or HOST_PLACEHOLDER,
        image=find_root_repository_name(project.path),
        ready=build_visible_configuration() if project.can_maintain else None,
    )


@registry_pages.get("/<int:repository_id>")
@permission_required("registry_repositories.tags")
def show(project: ProjectView, repository_id: int) -> ResponseReturnValue:
    """List the tags of a repository."""
    given, session = get_list_query("before"), db.session()
    repository = domain.get_repository(repository_id, project_id=project.id, session=session)
    found = domain.list_tags_after(
        repository, given.get("before", ""), limit=get_page_size(), session=session
    )
    last = found.tags[-1].name if found.has_more else None
    return render_template(
        "registry/show.html",
        project=project,
        repository=repository,
        page=build_page_links(KeysetPage(items=found.tags, next_before=last)),
        host=get_registry_policy().host or HOST_PLACEHOLDER,
        may_delete=_can_delete(project) and not repository.is_going,
    )


def _can_delete(project: ProjectView) -> bool:
    """Return whether the page shows delete buttons, which require a connected registry."""
    return project.can_maintain and not project.is_archived and bool(get_registry_policy().api_url)


@registry_pages.post("/<int:repository_id>/delete")
@permission_required("registry_repositories.delete")
def delete(project: ProjectView, repository_id: int) -> ResponseReturnValue:
    """Delete a repository with all its images in the background."""
    repository = domain.get_repository(repository_id, project_id=project.id, session=db.session())
    with show_errors_on_next_page(InvalidError):
        actions.delete_repository(get_unit_of_work(), project, repository_id)
        flash(f"{repository.path} and all its images are being deleted.", "info")
    return redirect(url_for("registry_pages.index", project_path=project.path))


@registry_pages.post("/<int:repository_id>/tags/<tag_name>/delete")
@permission_required("registry_repositories.delete_tag")
def delete_tag(project: ProjectView, repository_id: int, tag_name: str) -> ResponseReturnValue:
    """Delete a tag of a repository immediately."""
    try:
        actions.delete_tag(get_unit_of_work(), project, repository_id, tag_name)
    except (RegistryUnavailableError, RegistryRequestError) as error:
        flash(f"The tag {tag_name} was not deleted. {error}", "error")
    else:
        flash(f"The tag {tag_name} was deleted.")
    return redirect(
        url_for("registry_pages.show", project_path=project.path, repository_id=repository_id)
    )


@registry_tokens.get("/auth")
@ViewDescription(
    name="registry.token",
    tag=REGISTRY,
    caller=Caller.REGISTRY_CLIENT,
    query=RegistryTokenQuery,
    returns=RegistryTokenResponse,
    errors=_ERROR_STATUSES,
)
@open_to_anyone
@limit_oauth_by_address
def issue() -> Response:
    """Issue a token for Basic authentication credentials, or for anonymous pulls."""
    _check_service(request.args.get("service", ""))
    scopes = request.args.getlist("scope")
    return _build_token_response(
        find_basic_password, scopes, lambda token: token.convert_to_json_value()
    )


@registry_tokens.post("/auth")
@ViewDescription(
    name="registry.token_for_form",
    tag=REGISTRY,
    body=RegistryTokenForm,
    accepts=(FORM,),
    returns=RegistryTokenResponse,
    errors=(*_ERROR_STATUSES, 408, 413),
)
@open_to_anyone.with_changes(writes=False)
@limit_oauth_by_address
def issue_for_form() -> Response:
    """Issue a token for credentials sent as form fields."""
    request.max_content_length = _MAX_FORM_BYTES
    form = request.form
    _check_service(form.get("service", ""))
    if form.get("grant_type") != "password":
        message = "`grant_type` must be password. Refresh tokens are not supported."
        raise InvalidError(message, field="grant_type")
    scopes = form.getlist("scope")
    return _build_token_response(
        lambda: form.get("password", ""),
        scopes,
        lambda token: {**token.convert_to_json_value(), "scope": " ".join(scopes)},
    )


def _build_token_response(
    password: Callable[[], str | None],
    scopes: Iterable[str],
    as_json: Callable[[RegistryToken], dict[str, str | int]],
) -> Response:
    try:
        user = get_registry_user(password())
    except InvalidRegistryTokenError as error:
        count_wrong_registry_token()
        # The error is returned and not raised, so that the count is stored.
        return build_error_response(error)
    response = build_json_response(as_json(_issue_token(user, scopes)))
    response.headers["Cache-Control"] = "no-store"
    return response


def _issue_token(user: RegistryUser, scopes: Iterable[str]) -> RegistryToken:
    access = find_allowed_access(
        parse_requested_scopes(scopes), user.requester, session=db.session()
    )
    if not access and not user.name:
        raise InvalidRegistryCredentialsError(NO_CREDENTIALS_MESSAGE)
    return issue_registry_token(access, subject=user.name)


def _check_service(name: str) -> None:
    if name != REGISTRY_SERVICE:
        message = (
            f"`service` is unknown. Set auth.token.service of the registry to {REGISTRY_SERVICE}."
        )
        raise InvalidError(message, field="service")


@registry_tokens.get("/certificates")
@open_to_anyone
@limit_oauth_by_address
def certificates() -> Response:
    """Return the certificates that registries have to trust (`rootcertbundle`), in PEM format."""
    response = Response(build_certificate_bundle(), mimetype="application/x-pem-file")
    response.headers["Cache-Control"] = "no-cache"
    return response


@registry_notifications.post("/events")
@ViewDescription(
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
    """Store events from the container registry.

    Events for unknown projects are counted, but not stored.
    """
    check_notification_secret()
    received = read_limited_body(MAX_BODY_BYTES)
    check_media_type()
    received.raise_for_error()
    envelope = parse_envelope(received.content)
    outcomes = store_events(envelope.events, session=db.session(), now=get_current_time())
    count_registry_events({**outcomes, "ignored": envelope.left_out})
    return Response(status=200)
