"""The page /oauth/logout: sign-out at an application's request (RP-Initiated Logout 1.0)."""

from flask import flash, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from domain.oauth import endpoints as domain
from domain.oauth.clients.redirect_uris import destination_of
from domain.oauth.endpoints import BrowserSession, LogoutRequest, LogoutStep
from domain.oauth.protocol import ProtocolError, ProtocolRequest
from web.access.decorators import get_current_user, open_to_anyone
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.extensions import csrf
from web.http.outdated_forms import OUTDATED_FORM
from web.oauth import end_this_sign_in, request_in_form, request_in_query, send
from web.sealing.forms import (
    open_confirmation,
    open_request,
    seal_confirmation,
    seal_request,
)
from web.services import services, settings

logout = PageBlueprint("logout", __name__, url_prefix="/oauth", leads_to_applications=True)


@logout.get("/logout")
@open_to_anyone.but(writes=True, open_before_password_change=True)  # ID tokens sign out
def ask() -> ResponseReturnValue:
    """Sign the user out, ask for confirmation, or show that no user is signed in."""
    if request.method == "HEAD":  # must have no effects (RFC 9110, 9.3.2)
        return ""
    carried = request.args.get("request")
    try:
        asked = open_request(carried) if carried else _checked(request_in_query())
    except ProtocolError as error:
        return _refuse(error)
    return _follow(asked)


@logout.post("/logout")
@open_to_anyone.but(open_before_password_change=True)
@csrf.exempt  # type: ignore[untyped-decorator]
def decide() -> ResponseReturnValue:
    """Apply the user's decision, or redirect an application's POST to the page.

    An application's POST comes from another origin and has no CSRF token. The user's decision comes
    in a sealed form.
    """
    if "decision" not in request.form:
        return _redirect_to_page()
    sign_in_id = get_current_user().sign_in_id if current_user.is_authenticated else None
    form = open_confirmation(request.form.get("request", ""), sign_in_id=sign_in_id)
    if not form.is_valid:
        flash(OUTDATED_FORM, "warning")
        return _back_to_question(form.asked)
    if request.form["decision"] != "sign_out":
        return redirect(url_for("home.index"))
    return _sign_out(form.asked)


def _checked(asked: ProtocolRequest) -> LogoutRequest:
    return domain.check_logout(asked, issuer=settings().base_url, session=db.session())


def _redirect_to_page() -> ResponseReturnValue:
    try:
        asked = _checked(request_in_form())
    except ProtocolError as error:
        return _refuse(error)
    return _back_to_question(asked)


def _back_to_question(asked: LogoutRequest) -> ResponseReturnValue:
    return redirect(url_for("logout.ask", request=seal_request(asked)), code=303)


def _follow(asked: LogoutRequest) -> ResponseReturnValue:
    step = domain.next_step(
        asked, _browser_session(), session=db.session(), keyring=services().keyring
    )
    match step:
        case LogoutStep.SIGN_OUT:
            return _sign_out(asked)
        case LogoutStep.ASK:
            return _ask(asked)
        case LogoutStep.REDIRECT:
            return _return(asked)
        case LogoutStep.SHOW_DONE:
            return _page("done", asked)


def _browser_session() -> BrowserSession | None:
    if not current_user.is_authenticated:
        return None
    user = get_current_user()
    return BrowserSession(user_id=user.id, sign_in_id=user.sign_in_id)


def _sign_out(asked: LogoutRequest) -> ResponseReturnValue:
    end_this_sign_in(asked.application_name or "")
    return _return(asked)


def _return(asked: LogoutRequest) -> ResponseReturnValue:
    location = domain.return_url(asked)
    return send(domain.redirect_to(location)) if location else _page("done", asked)


def _ask(asked: LogoutRequest) -> ResponseReturnValue:
    return _page("ask", asked, seal_confirmation(asked, sign_in_id=get_current_user().sign_in_id))


def _is_of_another_user(asked: LogoutRequest) -> bool:
    return current_user.is_authenticated and asked.user_id not in {None, current_user.id}


def _page(state: str, asked: LogoutRequest, ticket: str = "") -> str:
    return render_template(
        "authorize/logout.html",
        state=state,
        application_name=asked.application_name,
        is_another_user=_is_of_another_user(asked),
        return_url=domain.return_url(asked),
        destination=destination_of(asked.redirect_uri) if asked.redirect_uri else None,
        request_token=ticket,
    )


def _refuse(error: ProtocolError) -> ResponseReturnValue:
    page = render_template(
        "authorize/logout.html", state="refused", description=error.description, error=error.error
    )
    return make_response(page, 400)
