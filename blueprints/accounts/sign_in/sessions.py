"""Pages for sign-in and sign-out."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from blueprints.accounts.sign_in.attempts import (
    build_sign_in_attempt,
    complete_sign_in,
    create_sign_in_and_redirect,
    filter_local_url,
    get_next_url,
    get_requested_page,
)
from domain.accounts.factors.passkeys import InvalidPasskeyError, build_passkey_sign_in_options
from domain.accounts.identity_providers.identities import list_active_providers
from domain.accounts.sign_in import actions as sign_in_actions
from domain.accounts.sign_in.sessions import PASSWORD_METHODS, Authentication
from domain.core.errors import ForbiddenError, TooManyAttemptsError
from domain.oauth.clients.applications import find_application
from domain.oauth.consent.pushed_requests import read_authorization_parameters
from forms.sign_in import PasskeyResponseForm, SignInForm
from web.access.decorators import get_current_user, open_to_anyone, sign_in_required
from web.access.return_urls import (
    STORED_REQUEST_PARAMETER,
    find_stored_return_url,
    shorten_return_url,
)
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.outdated_forms import OUTDATED_FORM_MESSAGE, redirect_outdated_form
from web.http.unit_of_work import get_unit_of_work
from web.oauth import (
    build_oauth_context,
    build_stored_request,
    parse_authorization_url,
    sign_out_browser,
)
from web.pages.markdown import render_markdown
from web.sealing.pending_sign_ins import (
    find_relying_party,
    get_relying_party,
    store_challenge,
    take_passkey_response,
)
from web.services import get_settings, get_sign_up_policy

sessions = PageBlueprint("sessions", __name__, url_prefix="/users", leads_to_applications=True)

WRONG_CREDENTIALS_MESSAGE = "Incorrect username or password."
#: Purpose of passkey challenges on the sign-in page.
_CHALLENGE_PURPOSE = "sign in"


@sessions.get("/sign_in")
@open_to_anyone.with_changes(open_before_second_factor=True)
def sign_in() -> ResponseReturnValue:
    """Show the sign-in form. Signed-in users see the form only if they have to sign in again."""
    if current_user.is_authenticated and "again" not in request.args:
        return redirect(get_next_url())
    known = get_current_user().username if current_user.is_authenticated else ""
    form = SignInForm(formdata=None, login=_find_login_hint() or known)
    return _render_form(form)


def _redirect_to_form() -> ResponseReturnValue:
    """Redirect to the sign-in form, which redirects signed-in users to the requested page."""
    flash(OUTDATED_FORM_MESSAGE, "warning")
    next_page = shorten_return_url(get_requested_page())
    return redirect(url_for("sessions.sign_in", next=next_page or None), code=303)


@sessions.post("/sign_in")
@open_to_anyone
@redirect_outdated_form(_redirect_to_form)
def sign_in_with_password() -> ResponseReturnValue:
    """Check the password, then redirect to the requested page or to the second factor."""
    form = SignInForm()
    if not form.validate_on_submit():
        return _render_form(form), 422
    attempt = build_sign_in_attempt(form.login.data or "", form.password.data or "")
    try:
        user = sign_in_actions.authenticate_with_password(get_unit_of_work(), attempt)
    except (ForbiddenError, TooManyAttemptsError) as error:
        return _render_error(form, error)
    if user is None:
        form.add_error("password", WRONG_CREDENTIALS_MESSAGE)
        return _render_form(form), 422
    return complete_sign_in(Authentication(user_id=user.id, methods=PASSWORD_METHODS))


@sessions.post("/sign_in/passkey.json")
@open_to_anyone
def build_passkey_options() -> ResponseReturnValue:
    """Return the WebAuthn options for signing in with any passkey."""
    return store_challenge(
        build_passkey_sign_in_options(get_relying_party()), purpose=_CHALLENGE_PURPOSE
    )


@sessions.post("/sign_in/passkey")
@open_to_anyone
@redirect_outdated_form(_redirect_to_form)
def sign_in_with_passkey() -> ResponseReturnValue:
    """Sign in with a passkey instead of a password."""
    form = SignInForm(formdata=None)
    try:
        reply = take_passkey_response(
            PasskeyResponseForm().credential.data or "", purpose=_CHALLENGE_PURPOSE
        )
        return create_sign_in_and_redirect(
            sign_in_actions.authenticate_with_passkey(get_unit_of_work(), reply)
        )
    except InvalidPasskeyError as error:
        form.add_error("", str(error))
        return _render_form(form), 422
    except TooManyAttemptsError as error:
        return _render_error(form, error)


@sessions.post("/sign_out")
@sign_in_required.with_changes(open_before_password_change=True)
@redirect_outdated_form(_redirect_to_form)
def sign_out() -> ResponseReturnValue:
    """Delete this browser's sign-in and clear its session."""
    sign_out_browser()
    flash("You are signed out.")
    next_page = shorten_return_url(get_requested_page())
    return redirect(url_for("sessions.sign_in", next=next_page or None))


@sessions.get("/sign_in/next/<handle>")
@open_to_anyone
def redirect_to_stored_url(handle: str) -> ResponseReturnValue:
    """Redirect to the long URL that is stored under a handle."""
    address = filter_local_url(find_stored_return_url(handle) or "")
    if not address:
        flash("This link was valid for one hour and has expired. Open the page again.", "warning")
    return redirect(address or url_for("home.index"))


def _find_authorization_parameters() -> dict[str, list[str]]:
    """Return the parameters of the authorization request that led to the sign-in, if any."""
    asked = parse_authorization_url(get_requested_page())
    handle = asked.get(STORED_REQUEST_PARAMETER, [""])[0]
    return parse_authorization_url(find_stored_return_url(handle) or "") if handle else asked


def _find_login_hint() -> str:
    asked = read_authorization_parameters(
        build_stored_request(_find_authorization_parameters()), build_oauth_context()
    )
    return asked.get("login_hint", "")[:255]


def _render_error(
    form: SignInForm, error: ForbiddenError | TooManyAttemptsError
) -> ResponseReturnValue:
    form.add_error("password", str(error))
    if isinstance(error, ForbiddenError):
        return _render_form(form), 403
    return _render_form(form), 429, {"Retry-After": str(error.retry_after)}


def _render_form(form: SignInForm) -> str:
    uid = _find_authorization_parameters().get("client_id", [""])[0].replace("\x00", "")
    application = find_application(uid, session=db.session()) if uid else None
    return render_template(
        "sessions/sign_in.html",
        form=form,
        application_name=application.name if application else None,
        application_registered_itself=bool(application and application.is_self_registered),
        welcome_title=get_settings().appearance_title,
        welcome_text=render_markdown(get_settings().appearance_description),
        has_passkeys=find_relying_party() is not None,
        offers_sign_up=get_sign_up_policy().is_offered,
        providers=list_active_providers(db.session()),
        leads_to_device=get_requested_page().partition("?")[0] == url_for("device.enter"),
    )
