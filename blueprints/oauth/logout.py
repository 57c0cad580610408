"""The /oauth/logout page: sign-out at an application's request (RP-Initiated Logout 1.0)."""

from flask import flash, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from domain.oauth import endpoints as domain
from domain.oauth.clients.redirect_uris import describe_redirect_destination
from domain.oauth.endpoints import BrowserSession, LogoutRequest, LogoutStep
from domain.oauth.protocol import ProtocolError, ProtocolRequest
from web.access.decorators import get_current_user, open_to_anyone
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.extensions import csrf
from web.http.outdated_forms import OUTDATED_FORM_MESSAGE
from web.oauth import build_flask_response, read_form_request, read_query_request, sign_out_browser
from web.sealing.forms import (
    seal_logout_form,
    seal_logout_request,
    unseal_logout_form,
    unseal_logout_request,
)
from web.services import get_services, get_settings

logout = PageBlueprint("logout", __name__, url_prefix="/oauth", leads_to_applications=True)


@logout.get("/logout")
# Writes are allowed, since a request with an ID token can sign the user out.
@open_to_anyone.with_changes(writes=True, open_before_password_change=True)
def ask() -> ResponseReturnValue:
    """Sign the user out, ask for confirmation, or show that no user is signed in."""
    if request.method == "HEAD":  # A HEAD request must not have effects (RFC 9110 9.3.2).
        return ""
    carried = request.args.get("request")
    try:
        asked = (
            unseal_logout_request(carried)
            if carried
            else _parse_logout_request(read_query_request())
        )
    except ProtocolError as error:
        return _render_error(error)
    return _perform_logout_step(asked)


@logout.post("/logout")
@open_to_anyone.with_changes(open_before_password_change=True)
@csrf.exempt  # type: ignore[untyped-decorator]
def decide() -> ResponseReturnValue:
    """Apply the user's decision, or redirect an application's POST request to the logout page.

    An application's POST request comes from another origin and has no CSRF token. The user's
    decision is submitted in a sealed form.
    """
    if "decision" not in request.form:
        return _redirect_post_to_confirmation()
    sign_in_id = get_current_user().sign_in_id if current_user.is_authenticated else None
    form = unseal_logout_form(request.form.get("request", ""), sign_in_id=sign_in_id)
    if not form.is_valid:
        flash(OUTDATED_FORM_MESSAGE, "warning")
        return _redirect_to_confirmation(form.asked)
    if request.form["decision"] != "sign_out":
        return redirect(url_for("home.index"))
    return _sign_out(form.asked)


def _parse_logout_request(request: ProtocolRequest) -> LogoutRequest:
    return domain.parse_logout_request(
        request, issuer=get_settings().base_url, session=db.session()
    )


def _redirect_post_to_confirmation() -> ResponseReturnValue:
    try:
        asked = _parse_logout_request(read_form_request())
    except ProtocolError as error:
        return _render_error(error)
    return _redirect_to_confirmation(asked)


def _redirect_to_confirmation(logout_request: LogoutRequest) -> ResponseReturnValue:
    return redirect(url_for("logout.ask", request=seal_logout_request(logout_request)), code=303)


def _perform_logout_step(logout_request: LogoutRequest) -> ResponseReturnValue:
    step = domain.find_next_logout_step(
        logout_request,
        _find_browser_session(),
        session=db.session(),
        keyring=get_services().keyring,
    )
    match step:
        case LogoutStep.SIGN_OUT:
            return _sign_out(logout_request)
        case LogoutStep.ASK:
            return _render_confirmation(logout_request)
        case LogoutStep.REDIRECT:
            return _redirect_to_application(logout_request)
        case LogoutStep.SHOW_DONE:
            return _render_page("done", logout_request)


def _find_browser_session() -> BrowserSession | None:
    if not current_user.is_authenticated:
        return None
    user = get_current_user()
    return BrowserSession(user_id=user.id, sign_in_id=user.sign_in_id)


def _sign_out(logout_request: LogoutRequest) -> ResponseReturnValue:
    sign_out_browser(logout_request.application_name or "")
    return _redirect_to_application(logout_request)


def _redirect_to_application(logout_request: LogoutRequest) -> ResponseReturnValue:
    location = domain.build_return_url(logout_request)
    return (
        build_flask_response(domain.build_redirect(location))
        if location
        else _render_page("done", logout_request)
    )


def _render_confirmation(logout_request: LogoutRequest) -> ResponseReturnValue:
    return _render_page(
        "ask",
        logout_request,
        seal_logout_form(logout_request, sign_in_id=get_current_user().sign_in_id),
    )


def _belongs_to_another_user(logout_request: LogoutRequest) -> bool:
    return current_user.is_authenticated and logout_request.user_id not in {None, current_user.id}


def _render_page(state: str, logout_request: LogoutRequest, ticket: str = "") -> str:
    return render_template(
        "authorize/logout.html",
        state=state,
        application_name=logout_request.application_name,
        is_another_user=_belongs_to_another_user(logout_request),
        return_url=domain.build_return_url(logout_request),
        destination=describe_redirect_destination(logout_request.redirect_uri)
        if logout_request.redirect_uri
        else None,
        request_token=ticket,
    )


def _render_error(error: ProtocolError) -> ResponseReturnValue:
    page = render_template(
        "authorize/logout.html", state="refused", description=error.description, error=error.error
    )
    return make_response(page, 400)
