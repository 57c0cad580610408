"""Sign in and sign out."""

from urllib.parse import parse_qs

from flask import Blueprint, flash, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user, logout_user

from domain.accounts.factors.passkey_ceremonies import REQUIRED, PasskeyRefusedError
from domain.accounts.factors.passkeys import find_owner, question_for_anyone
from domain.accounts.factors.second_factors import has_second_factor
from domain.accounts.signing_in.second_factor_check import Step, prove_with_passkey
from domain.accounts.signing_in.sessions import BY_PASSWORD, Proof, by_passkey, close_sign_in
from domain.accounts.users import authenticate, find_entrant, find_user
from domain.audit.events import Event, EventKind
from domain.database.locks import release_locks
from domain.errors import TooManyAttemptsError
from domain.oauth.clients.applications import find_by_uid
from domain.oauth.consent.pushed_requests import read_parameters
from forms.sign_in import SignInForm
from forms.two_factor import PasskeyAnswerForm
from web.extensions import db
from web.http.access import open_to_anyone, signed_in, visitor
from web.http.audit import note
from web.oauth.binding import oauth_context, request_from
from web.sealing.passkey_challenges import ask, find_party, get_party, take_reply
from web.sealing.pending_sign_ins import give_ticket
from web.services import knock_limits, now, services
from web.signing_in.attempts import knock_of
from web.signing_in.completion import sign_in_as, wanted_page, way_on

sessions = Blueprint("sessions", __name__, url_prefix="/users")

WRONG = "That user name or password is not right."
#: What a question about passkeys on this page is for.
_PURPOSE = "sign in"


@sessions.get("/sign_in")
@open_to_anyone
def sign_in() -> ResponseReturnValue:
    """Show the form; to who is signed in, only if they shall prove again who they are."""
    if current_user.is_authenticated and "again" not in request.args:
        return redirect(way_on())
    known = visitor().username if current_user.is_authenticated else ""
    form = SignInForm(formdata=None, login=_login_hint() or known)
    return _page(form)


@sessions.post("/sign_in")
@open_to_anyone
def check_in() -> ResponseReturnValue:
    """Check who it is, and go on to where they wanted, or to the second factor."""
    form = SignInForm()
    if not form.validate_on_submit():
        return _page(form), 422
    knock = knock_of(form.login.data or "", form.password.data or "")
    try:
        user = authenticate(knock, session=db.session(), keyring=services().keyring, now=now())
    except TooManyAttemptsError as error:
        return _too_many(form, error)
    if user is None:
        _note_failure(_id_of(knock.login), "password")
        form.object_to("password", WRONG)
        return _page(form), 422
    if has_second_factor(user.id, session=db.session()):
        give_ticket(user)
        return redirect(url_for("two_factor.enter", next=wanted_page() or None))
    return sign_in_as(Proof(user=user, methods=BY_PASSWORD))


@sessions.post("/sign_in/passkey.json")
@open_to_anyone
def ask_for_passkey() -> ResponseReturnValue:
    """Ask the browser for any passkey of this service."""
    return ask(question_for_anyone(get_party()), purpose=_PURPOSE)


@sessions.post("/sign_in/passkey")
@open_to_anyone
def check_in_by_passkey() -> ResponseReturnValue:
    """Check a passkey that stands for name and password."""
    form = SignInForm(formdata=None)
    try:
        return sign_in_as(_proof_by_passkey())
    except PasskeyRefusedError as error:
        form.object_to("", str(error))
        return _page(form), 422
    except TooManyAttemptsError as error:
        return _too_many(form, error)


@sessions.post("/sign_out")
@signed_in
def sign_out() -> ResponseReturnValue:
    """End this browser's sign-in, here and in the database; another may follow it."""
    note(Event(kind=EventKind.SIGNED_OUT, user_id=visitor().id))
    close_sign_in(visitor().sign_in_id, session=db.session())
    logout_user()
    session.clear()
    flash("You are signed out.")
    return redirect(url_for("sessions.sign_in", next=request.values.get("next")))


def _proof_by_passkey() -> Proof:
    """Return who has shown a passkey; raises PasskeyRefusedError or TooManyAttemptsError."""
    database = db.session()
    reply = take_reply(PasskeyAnswerForm().credential.data or "", purpose=_PURPOSE)
    owner_id = find_owner(reply, session=database)
    user = find_entrant(owner_id, session=database) if owner_id else None
    step = Step(
        user_id=user.id if user else None, address=request.remote_addr, limits=knock_limits()
    )
    try:
        proof = prove_with_passkey(
            step, reply, REQUIRED, session=database, keyring=services().keyring, now=now()
        )
    except PasskeyRefusedError:
        _note_failure(owner_id, "passkey")
        raise
    if user is None:
        raise PasskeyRefusedError
    return Proof(user=user, methods=by_passkey(proof))


def _note_failure(user_id: int | None, what: str) -> None:
    """Keep that somebody failed; a name that nobody has may be a password in the wrong field."""
    note(Event(kind=EventKind.SIGN_IN_FAILED, user_id=user_id, details={"wrong": what}))
    release_locks(db.session())  # nobody waits for the page that says so


def _id_of(login: str) -> int | None:
    user = find_user(login, session=db.session())
    return user.id if user else None


def _asking() -> dict[str, list[str]]:
    """Return the parameters of the authorization request that led here, if one did."""
    path, _, query = wanted_page().partition("?")
    return parse_qs(query) if path == url_for("authorize.consent") else {}


def _login_hint() -> str:
    asked = read_parameters(request_from(_asking()), oauth_context())
    return asked.get("login_hint", "")[:255]


def _too_many(form: SignInForm, error: TooManyAttemptsError) -> ResponseReturnValue:
    form.object_to("password", str(error))
    return _page(form), 429, {"Retry-After": str(error.retry_after)}


def _page(form: SignInForm) -> str:
    uid = _asking().get("client_id", [""])[0].replace("\x00", "")
    application = find_by_uid(uid, session=db.session()) if uid else None
    return render_template(
        "sessions/sign_in.html",
        form=form,
        application_name=application.name if application else None,
        application_registered_itself=bool(application and application.client_metadata is not None),
        has_passkeys=find_party() is not None,
        leads_to_device=wanted_page().partition("?")[0] == url_for("device.enter"),
    )
