"""/oauth/authorize: the authorization endpoint and the consent page (RFC 6749 section 4.1)."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from flask import flash, g, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from blueprints.accounts.signing_in.attempts import lead_to_security
from domain.access.scopes import views as scope_views
from domain.oauth import authorization
from domain.oauth.authorization import AuthorizationStep, CheckedRequest
from domain.oauth.clients.directory import get_page
from domain.oauth.clients.redirect_uris import destination_of
from domain.oauth.clients.types import ApplicationView
from domain.oauth.consent.approvals import Approval
from domain.oauth.consent.pushed_requests import open_pushed
from domain.oauth.grants.authorization_code import UnknownRedirectUriError
from domain.oauth.protocol import ProtocolError, ProtocolRequest
from domain.oauth.server import AuthorizationServer
from web.access.decorators import get_current_user, open_to_anyone
from web.access.kept_pages import short_address
from web.access.second_factor_rule import must_set_up_second_factor
from web.api.description.described import FORM, HTML, OAUTH, Answer, Description
from web.api.schemas.oauth import AuthorizationRequest
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.extensions import csrf
from web.http.outdated_forms import OUTDATED_FORM, leads_back
from web.http.public_urls import current_path
from web.oauth import (
    authorization_url,
    decided_approval,
    needs_new_proof,
    oauth_context,
    refuse_other_encodings,
    request_from,
    request_in_query,
    send,
    url_after_sign_in,
    visitors_approval,
)
from web.sealing.forms import consume, open_consent_form, seal_consent_form
from web.services import now

authorize = PageBlueprint("authorize", __name__, url_prefix="/oauth", leads_to_applications=True)


@authorize.get("/authorize")
@Description(
    name="oauth.authorize",
    tag=OAUTH,
    query=AuthorizationRequest,
    content_type=HTML,
    others={
        302: Answer(
            text="Redirect to the sign-in page, or back to the application with a code or an "
            "error.",
            content_type=HTML,
            headers=("Location",),
        ),
        400: Answer(text="The application is unknown.", content_type=HTML),
    },
)
# An application that was approved before gets its code immediately. With prompt=none, it gets a
# response even if the user has to set something up first: the request may be in a hidden frame.
@open_to_anyone.but(writes=True, open_before_password_change=True)
def consent() -> ResponseReturnValue:
    """Redirect to the sign-in page, show the consent page, or redirect back with a code."""
    if request.method == "HEAD":  # must have no effects (RFC 9110, 9.3.2)
        return ""
    server, asked = AuthorizationServer(oauth_context()), request_from({})
    try:
        asked = request_in_query()
        asked = open_pushed(asked, server.context)
        checked = authorization.check_request(asked, server)
        return _follow(
            authorization.next_step(checked, _approval(), server=server), checked, server
        )
    except ProtocolError as error:
        return _refuse(error, asked, server)


@authorize.post("/authorize")
@Description(
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

    The request comes from another origin and has no CSRF token, so it is only redirected to GET.
    """
    try:
        refuse_other_encodings(request.get_data())
    except ProtocolError as error:
        return _refuse(error, request_from({}), AuthorizationServer(oauth_context()))
    return redirect(authorization_url(request.form.to_dict(flat=False)), code=303)


def _back_to_question() -> ResponseReturnValue:
    """Redirect to the consent page for the user who is now signed in, without a decision."""
    form = open_consent_form(request.form.get("request", ""))
    flash(OUTDATED_FORM, "warning")
    return redirect(authorization_url(form.parameters), code=303)


@authorize.post("/authorize/decision")
@open_to_anyone
@leads_back(_back_to_question)
def decide() -> ResponseReturnValue:
    """Apply the decision of the consent page, once."""
    form = open_consent_form(request.form.get("request", ""))
    if not current_user.is_authenticated:
        return redirect(url_for("sessions.sign_in", next=authorization_url(form.parameters)))
    if needs_new_proof():
        begin = authorization_url(form.parameters)
        return redirect(url_for("sessions.sign_in", again="yes", next=begin))
    if form.is_expired or form.sign_in_id != get_current_user().sign_in_id:
        return _back_to_question()
    asked = request_from(form.parameters)
    asked.decision = form.number
    return _answer(asked) if consume(form) else _repeat(asked)


def _repeat(asked: ProtocolRequest) -> ResponseReturnValue:
    """Handle a form that was submitted before; its first decision counts."""
    server = AuthorizationServer(oauth_context())
    is_yes = request.form.get("decision") == "authorize"
    user_id = get_current_user().id
    first = authorization.repeat_decision(asked, user_id, is_yes=is_yes, server=server)
    if first is not None:
        return send(first)
    return render_template("authorize/answered.html")


def _answer(asked: ProtocolRequest) -> ResponseReturnValue:
    server = AuthorizationServer(oauth_context())
    is_yes = request.form.get("decision") == "authorize"
    answer = authorization.accept if is_yes else authorization.refuse
    try:
        asked = open_pushed(asked, server.context)
        checked = authorization.check_request(asked, server)
        return send(answer(checked, decided_approval(), server=server))
    except ProtocolError as error:
        return _refuse(error, asked, server)


def _approval() -> Approval | None:
    """Return the user's approval, or None if they must sign in or complete their setup first."""
    if not current_user.is_authenticated or current_user.user.must_change_password:
        return None
    return None if must_set_up_second_factor() else visitors_approval()


def _follow(
    step: AuthorizationStep, checked: CheckedRequest, server: AuthorizationServer
) -> ResponseReturnValue:
    match step:
        case AuthorizationStep.SIGN_IN | AuthorizationStep.SIGN_IN_AGAIN:
            return _to_sign_in(checked, is_known=step is AuthorizationStep.SIGN_IN_AGAIN)
        case AuthorizationStep.CONSENT:
            return _ask(checked, server)
        case AuthorizationStep.ISSUE_CODE:
            return send(authorization.finish(checked, _approval(), server=server))


def _to_sign_in(checked: CheckedRequest, *, is_known: bool) -> ResponseReturnValue:
    """Redirect to the sign-in page, which returns here; a URL by itself never signs a user out.

    Signed-in users who have to set something up first are redirected to that page.
    """
    if current_user.is_authenticated and not is_known:
        return lead_to_security()
    return_url = short_address(current_path())
    if checked.may_need_new_sign_in:
        return_url = url_after_sign_in(checked.request)
    again = "yes" if is_known else None
    return redirect(url_for("sessions.sign_in", again=again, next=return_url))


def _ask(checked: CheckedRequest, server: AuthorizationServer) -> ResponseReturnValue:
    prompt = authorization.consent_prompt(checked, user_id=get_current_user().id, server=server)
    destination = destination_of(checked.redirect_uri)
    return render_template(
        "authorize/consent.html",
        application=get_page(checked.application_id, session=db.session(), now=now()),
        new_scopes=scope_views(prompt.new, new=prompt.new),
        granted_scopes=scope_views(prompt.granted),
        redirect_host=destination.words,
        is_insecure_redirect=destination.is_insecure,
        request_token=seal_consent_form(
            checked.request.payload.datalist, sign_in_id=get_current_user().sign_in_id
        ),
    )


def _refuse(
    error: ProtocolError, asked: ProtocolRequest, server: AuthorizationServer
) -> ResponseReturnValue:
    """Redirect to the application with the error if safe, else show it (section 4.1.2.1)."""
    authorization.record_refusal(asked, error, server)
    answer = server.handle_error_response(asked, error) if error.redirect_uri else None
    if answer and authorization.may_redirect_error(
        asked, is_signed_in=current_user.is_authenticated
    ):
        return send(answer)
    page = render_template(
        "authorize/error.html",
        title="Invalid authorization request",
        error=error,
        return_url=dict(answer.headers)["Location"] if answer else None,
        destination=destination_of(error.redirect_uri) if answer else None,
        mismatch=_mismatch(error),
        request_id=g.get("request_id", ""),
    )
    return make_response(page, 400)


def _mismatch(error: ProtocolError) -> Mapping[str, Any] | None:
    """Return the presented redirect URI, and the registered URIs if the visitor may edit them."""
    if not isinstance(error, UnknownRedirectUriError):
        return None
    edit_url = _edit_url(error.application)
    return {
        "presented": error.presented,
        "registered": error.application.redirect_uris if edit_url else (),
        "edit_url": edit_url,
    }


def _edit_url(application: ApplicationView) -> str | None:
    """Return the URL where the visitor can edit an application, or None if they may not."""
    if not current_user.is_authenticated:
        return None
    if application.is_owned_by(get_current_user().id):
        return url_for("applications.edit", application_id=application.id)
    if get_current_user().is_admin:
        return url_for("admin.applications.edit", application_id=application.id)
    return None
