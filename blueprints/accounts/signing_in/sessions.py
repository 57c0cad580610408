"""Pages for sign-in and sign-out."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from blueprints.accounts.signing_in.attempts import (
    complete,
    next_url,
    own_page,
    requested_page,
    sign_in_as,
    sign_in_attempt,
)
from domain.accounts.factors.passkeys import PasskeyRefusedError, request_options_for_anyone
from domain.accounts.identity_providers.identities import offered
from domain.accounts.signing_in import actions as signing_in
from domain.accounts.signing_in.sessions import BY_PASSWORD, Authentication
from domain.core.errors import ForbiddenError, TooManyAttemptsError
from domain.oauth.clients.applications import find_application
from domain.oauth.consent.pushed_requests import read_parameters
from forms.signing_in import PasskeyResponseForm, SignInForm
from web.access.decorators import get_current_user, open_to_anyone, signed_in
from web.access.kept_pages import KEPT_REQUEST, find_address, short_address
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.outdated_forms import OUTDATED_FORM, leads_back
from web.http.work import work
from web.oauth import end_this_sign_in, oauth_context, parameters_of, request_from
from web.pages.markdown import rendered_markdown
from web.sealing.sign_ins import (
    find_relying_party,
    get_relying_party,
    remember_challenge,
    take_response,
)
from web.services import settings, sign_up_policy

sessions = PageBlueprint("sessions", __name__, url_prefix="/users", leads_to_applications=True)

WRONG = "Incorrect user name or password."
#: Purpose of the passkey challenges of this page.
_PURPOSE = "sign in"


@sessions.get("/sign_in")
@open_to_anyone.but(open_before_second_factor=True)
def sign_in() -> ResponseReturnValue:
    """Show the sign-in form; signed-in users see it only to sign in again."""
    if current_user.is_authenticated and "again" not in request.args:
        return redirect(next_url())
    known = get_current_user().username if current_user.is_authenticated else ""
    form = SignInForm(formdata=None, login=_login_hint() or known)
    return _page(form)


def _back_to_form() -> ResponseReturnValue:
    """Redirect to the sign-in form, which redirects signed-in users to the requested page."""
    flash(OUTDATED_FORM, "warning")
    next_page = short_address(requested_page())
    return redirect(url_for("sessions.sign_in", next=next_page or None), code=303)


@sessions.post("/sign_in")
@open_to_anyone
@leads_back(_back_to_form)
def check_in() -> ResponseReturnValue:
    """Check the password, then redirect to the requested page or to the second factor."""
    form = SignInForm()
    if not form.validate_on_submit():
        return _page(form), 422
    attempt = sign_in_attempt(form.login.data or "", form.password.data or "")
    try:
        user = signing_in.prove_password(work(), attempt)
    except (ForbiddenError, TooManyAttemptsError) as error:
        return _refused(form, error)
    if user is None:
        form.object_to("password", WRONG)
        return _page(form), 422
    return complete(Authentication(user_id=user.id, methods=BY_PASSWORD))


@sessions.post("/sign_in/passkey.json")
@open_to_anyone
def ask_for_passkey() -> ResponseReturnValue:
    """Return the options to sign in with any passkey."""
    return remember_challenge(request_options_for_anyone(get_relying_party()), purpose=_PURPOSE)


@sessions.post("/sign_in/passkey")
@open_to_anyone
@leads_back(_back_to_form)
def check_in_by_passkey() -> ResponseReturnValue:
    """Sign in with a passkey and no password."""
    form = SignInForm(formdata=None)
    try:
        reply = take_response(PasskeyResponseForm().credential.data or "", purpose=_PURPOSE)
        return sign_in_as(signing_in.prove_passkey_alone(work(), reply))
    except PasskeyRefusedError as error:
        form.object_to("", str(error))
        return _page(form), 422
    except TooManyAttemptsError as error:
        return _refused(form, error)


@sessions.post("/sign_out")
@signed_in.but(open_before_password_change=True)
@leads_back(_back_to_form)
def sign_out() -> ResponseReturnValue:
    """Delete this browser's sign-in and clear its session."""
    end_this_sign_in()
    flash("You are signed out.")
    next_page = short_address(requested_page())
    return redirect(url_for("sessions.sign_in", next=next_page or None))


@sessions.get("/sign_in/next/<handle>")
@open_to_anyone
def go_on(handle: str) -> ResponseReturnValue:
    """Redirect to the page stored under a handle because its URL is long."""
    address = own_page(find_address(handle) or "")
    if not address:
        flash("This link was valid for one hour and has expired. Open the page again.", "warning")
    return redirect(address or url_for("home.index"))


def _asking() -> dict[str, list[str]]:
    """Return the parameters of the authorization request that redirected here, if any."""
    asked = parameters_of(requested_page())
    handle = asked.get(KEPT_REQUEST, [""])[0]
    return parameters_of(find_address(handle) or "") if handle else asked


def _login_hint() -> str:
    asked = read_parameters(request_from(_asking()), oauth_context())
    return asked.get("login_hint", "")[:255]


def _refused(form: SignInForm, error: ForbiddenError | TooManyAttemptsError) -> ResponseReturnValue:
    form.object_to("password", str(error))
    if isinstance(error, ForbiddenError):
        return _page(form), 403
    return _page(form), 429, {"Retry-After": str(error.retry_after)}


def _page(form: SignInForm) -> str:
    uid = _asking().get("client_id", [""])[0].replace("\x00", "")
    application = find_application(uid, session=db.session()) if uid else None
    return render_template(
        "sessions/sign_in.html",
        form=form,
        application_name=application.name if application else None,
        application_registered_itself=bool(application and application.registered_itself),
        welcome_title=settings().appearance_title,
        welcome_text=rendered_markdown(settings().appearance_description),
        has_passkeys=find_relying_party() is not None,
        offers_sign_up=sign_up_policy().is_offered,
        providers=offered(db.session()),
        leads_to_device=requested_page().partition("?")[0] == url_for("device.enter"),
    )
