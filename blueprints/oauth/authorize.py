"""/oauth/authorize: the authorization endpoint and the consent page (RFC 6749 section 4.1)."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from flask import flash, g, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from blueprints.accounts.sign_in.attempts import redirect_to_security_settings
from domain.access.scopes import describe_scopes as scope_views
from domain.oauth import authorization
from domain.oauth.authorization import AuthorizationStep, CheckedAuthorizationRequest
from domain.oauth.clients.application_lists import get_application_overview
from domain.oauth.clients.redirect_uris import describe_redirect_destination
from domain.oauth.clients.types import ApplicationView
from domain.oauth.consent.approvals import Approver
from domain.oauth.consent.pushed_requests import resolve_pushed_request
from domain.oauth.grants.authorization_code import UnknownRedirectUriError
from domain.oauth.protocol import ProtocolError, ProtocolRequest
from domain.oauth.server import AuthorizationServer
from web.access.decorators import get_current_user, open_to_anyone
from web.access.return_urls import shorten_return_url
from web.access.second_factor_requirements import find_due_second_factor_requirement
from web.api.openapi.view_descriptions import (
    FORM,
    HTML,
    OAUTH,
    AdditionalResponse,
    ViewDescription,
)
from web.api.schemas.oauth import AuthorizationRequest
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.extensions import csrf
from web.http.outdated_forms import OUTDATED_FORM_MESSAGE, redirect_outdated_form
from web.http.public_urls import get_current_path_and_query
from web.oauth import (
    build_approval,
    build_authorization_url,
    build_flask_response,
    build_oauth_context,
    build_stored_request,
    build_submitted_approval,
    build_url_after_sign_in,
    check_parameters_utf8,
    read_query_request,
    requires_recent_sign_in,
)
from web.sealing.forms import consume_consent_form, seal_consent_form, unseal_consent_form
from web.services import get_current_time

authorize = PageBlueprint("authorize", __name__, url_prefix="/oauth", leads_to_applications=True)


@authorize.get("/authorize")
@ViewDescription(
    name="oauth.authorize",
    tag=OAUTH,
    query=AuthorizationRequest,
    content_type=HTML,
    others={
        302: AdditionalResponse(
            text="Redirect to the sign-in page, or back to the application with a code or an "
            "error.",
            content_type=HTML,
            headers=("Location",),
        ),
        400: AdditionalResponse(text="The application is unknown.", content_type=HTML),
    },
)
# Writes are allowed, since an application that was already approved receives its code immediately.
# Users with a required setup step are not redirected before the view runs: with prompt=none, the
# request may be in a hidden frame, and the application must receive a response.
@open_to_anyone.with_changes(writes=True, open_before_password_change=True)
def consent() -> ResponseReturnValue:
    """Redirect to the sign-in page, show the consent page, or redirect back with a code."""
    if request.method == "HEAD":  # A HEAD request must not have effects (RFC 9110 9.3.2).
        return ""
    server, asked = AuthorizationServer(build_oauth_context()), build_stored_request({})
    try:
        asked = read_query_request()
        asked = resolve_pushed_request(asked, server.context)
        checked = authorization.check_authorization_request(asked, server)
        return _perform_authorization_step(
            authorization.find_next_step(checked, _find_approval(), server=server), checked, server
        )
    except ProtocolError as error:
        return _handle_error(error, asked, server)


@authorize.post("/authorize")
@ViewDescription(
    name="oauth.authorize_by_post",
    tag=OAUTH,
    body=AuthorizationRequest,
    accepts=(FORM,),
    content_type=HTML,
    status=HTTPStatus.SEE_OTHER,
)
@open_to_anyone
@csrf.exempt  # type: ignore[untyped-decorator]
def consent_by_post() -> ResponseReturnValue:
    """Accept an authorization request by POST (OpenID Connect Core 3.1.2.1).

    The request comes from another origin and has no CSRF token, so the browser is only redirected
    to the same authorization request by GET.
    """
    try:
        check_parameters_utf8(request.get_data())
    except ProtocolError as error:
        return _handle_error(
            error, build_stored_request({}), AuthorizationServer(build_oauth_context())
        )
    return redirect(build_authorization_url(request.form.to_dict(flat=False)), code=303)


def _redirect_to_consent() -> ResponseReturnValue:
    """Redirect to the consent page for the current user, without storing a decision."""
    form = unseal_consent_form(request.form.get("request", ""))
    flash(OUTDATED_FORM_MESSAGE, "warning")
    return redirect(build_authorization_url(form.parameters), code=303)


@authorize.post("/authorize/decision")
@open_to_anyone
@redirect_outdated_form(_redirect_to_consent)
def decide() -> ResponseReturnValue:
    """Apply the decision that was submitted on the consent page. Each form is accepted once."""
    form = unseal_consent_form(request.form.get("request", ""))
    if not current_user.is_authenticated:
        return redirect(url_for("sessions.sign_in", next=build_authorization_url(form.parameters)))
    if requires_recent_sign_in():
        begin = build_authorization_url(form.parameters)
        return redirect(url_for("sessions.sign_in", again="yes", next=begin))
    if form.is_expired or form.sign_in_id != get_current_user().sign_in_id:
        return _redirect_to_consent()
    asked = build_stored_request(form.parameters)
    asked.decision = form.number
    return (
        _apply_decision(asked) if consume_consent_form(form) else _handle_repeated_decision(asked)
    )


def _handle_repeated_decision(oauth_request: ProtocolRequest) -> ResponseReturnValue:
    """Repeat the response to the first decision if a form was already submitted."""
    server = AuthorizationServer(build_oauth_context())
    is_yes = request.form.get("decision") == "authorize"
    user_id = get_current_user().id
    first = authorization.repeat_recorded_decision(
        oauth_request, user_id, is_yes=is_yes, server=server
    )
    if first is not None:
        return build_flask_response(first)
    return render_template("authorize/answered.html")


def _apply_decision(oauth_request: ProtocolRequest) -> ResponseReturnValue:
    server = AuthorizationServer(build_oauth_context())
    is_yes = request.form.get("decision") == "authorize"
    answer = authorization.accept_request if is_yes else authorization.deny_request
    try:
        oauth_request = resolve_pushed_request(oauth_request, server.context)
        checked = authorization.check_authorization_request(oauth_request, server)
        return build_flask_response(answer(checked, build_submitted_approval(), server=server))
    except ProtocolError as error:
        return _handle_error(error, oauth_request, server)


def _find_approval() -> Approver | None:
    """Return the signed-in user, who can approve or deny the authorization request.

    Return None if a sign-in or a setup step is required first.
    """
    if not current_user.is_authenticated or current_user.user.must_change_password:
        return None
    return None if find_due_second_factor_requirement() else build_approval()


def _perform_authorization_step(
    step: AuthorizationStep,
    checked_request: CheckedAuthorizationRequest,
    server: AuthorizationServer,
) -> ResponseReturnValue:
    match step:
        case AuthorizationStep.SIGN_IN | AuthorizationStep.SIGN_IN_AGAIN:
            return _redirect_to_sign_in(
                checked_request, is_known=step is AuthorizationStep.SIGN_IN_AGAIN
            )
        case AuthorizationStep.CONSENT:
            return _render_consent_page(checked_request, server)
        case AuthorizationStep.ISSUE_CODE:
            return build_flask_response(
                authorization.finish_without_consent(
                    checked_request, _find_approval(), server=server
                )
            )


def _redirect_to_sign_in(
    checked_request: CheckedAuthorizationRequest, *, is_known: bool
) -> ResponseReturnValue:
    """Redirect to the sign-in page, which redirects back to the authorization request.

    Signed-in users are not signed out. If they still have to complete a setup step, they are
    redirected to the security settings.
    """
    if current_user.is_authenticated and not is_known:
        return redirect_to_security_settings()
    return_url = shorten_return_url(get_current_path_and_query())
    if checked_request.may_require_new_sign_in:
        return_url = build_url_after_sign_in(checked_request.request)
    again = "yes" if is_known else None
    return redirect(url_for("sessions.sign_in", again=again, next=return_url))


def _render_consent_page(
    checked_request: CheckedAuthorizationRequest, server: AuthorizationServer
) -> ResponseReturnValue:
    prompt = authorization.get_consent_prompt(
        checked_request, user_id=get_current_user().id, server=server
    )
    destination = describe_redirect_destination(checked_request.redirect_uri)
    return render_template(
        "authorize/consent.html",
        application=get_application_overview(
            checked_request.application_id, session=db.session(), now=get_current_time()
        ),
        new_scopes=scope_views(prompt.new, new=prompt.new),
        granted_scopes=scope_views(prompt.granted),
        redirect_host=destination.words,
        is_insecure_redirect=destination.is_insecure,
        request_token=seal_consent_form(
            checked_request.request.payload.datalist, sign_in_id=get_current_user().sign_in_id
        ),
    )


def _handle_error(
    error: ProtocolError, request: ProtocolRequest, server: AuthorizationServer
) -> ResponseReturnValue:
    """Redirect to the application with the error if this is safe, or show the error.

    See RFC 6749 section 4.1.2.1.
    """
    authorization.record_rejected_request(request, error, server)
    answer = server.handle_error_response(request, error) if error.redirect_uri else None
    if answer and authorization.can_redirect_error(
        request, is_signed_in=current_user.is_authenticated
    ):
        return build_flask_response(answer)
    page = render_template(
        "authorize/error.html",
        title="Invalid authorization request",
        error=error,
        return_url=dict(answer.headers)["Location"] if answer else None,
        destination=describe_redirect_destination(error.redirect_uri) if answer else None,
        mismatch=_describe_redirect_uri_mismatch(error),
        request_id=g.get("request_id", ""),
    )
    return make_response(page, 400)


def _describe_redirect_uri_mismatch(error: ProtocolError) -> Mapping[str, Any] | None:
    """Return the presented redirect URI, and the registered URIs if the visitor may edit them."""
    if not isinstance(error, UnknownRedirectUriError):
        return None
    edit_url = _find_edit_url(error.application)
    return {
        "presented": error.presented,
        "registered": error.application.redirect_uris if edit_url else (),
        "edit_url": edit_url,
    }


def _find_edit_url(application: ApplicationView) -> str | None:
    """Return the URL where the visitor can edit an application.

    Return None if the visitor is not allowed to edit it.
    """
    if not current_user.is_authenticated:
        return None
    if application.is_owned_by(get_current_user().id):
        return url_for("applications.edit", application_id=application.id)
    if get_current_user().is_admin:
        return url_for("admin.applications.edit", application_id=application.id)
    return None
