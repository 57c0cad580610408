"""The step after the password: a code of an app, a recovery code, or a passkey."""

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from domain.accounts.factors.passkey_ceremonies import PREFERRED, PasskeyRefusedError
from domain.accounts.factors.passkeys import question_for_user
from domain.accounts.factors.second_factors import factors_of
from domain.accounts.signing_in.second_factor_check import (
    CodeKind,
    Step,
    WrongCodeError,
    prove_with_code,
    prove_with_passkey,
)
from domain.accounts.signing_in.sessions import BY_PASSWORD_AND_CODE, Proof, by_password_and_passkey
from domain.audit.events import Actor, Event, EventKind
from domain.errors import InvalidError, TooManyAttemptsError
from forms.two_factor import CodeForm, PasskeyAnswerForm
from web.extensions import db
from web.http.access import open_to_anyone
from web.http.audit import note
from web.sealing.passkey_challenges import ask, find_party, get_party, take_reply
from web.sealing.pending_sign_ins import Ticket, find_ticket, spend
from web.services import knock_limits, now, services
from web.signing_in.completion import sign_in_as, wanted_page, way_on
from web.signing_in.known_browsers import known_accounts

two_factor = Blueprint("two_factor", __name__, url_prefix="/users/two_factor")


@two_factor.get("")
@open_to_anyone
def enter() -> ResponseReturnValue:
    """Ask for the second factor."""
    ticket = find_ticket()
    return _page(CodeForm(formdata=None), ticket) if ticket else _begin_again()


@two_factor.post("")
@open_to_anyone
def check_code() -> ResponseReturnValue:
    """Take a code of the app or a recovery code."""
    ticket, form = find_ticket(), CodeForm()
    if ticket is None:
        return _begin_again()
    if not form.validate_on_submit():
        return _page(form, ticket), 422
    try:
        kind = _prove_with_code(ticket, form.code.data or "")
    except (InvalidError, TooManyAttemptsError) as error:
        return _refused(form, ticket, error)
    if kind is CodeKind.RECOVERY:
        _note_recovery(ticket)
    return _go_on(ticket, BY_PASSWORD_AND_CODE)


@two_factor.post("/passkey.json")
@open_to_anyone
def ask_for_passkey() -> ResponseReturnValue:
    """Ask the browser for a passkey of who gave their password."""
    ticket = find_ticket()
    if ticket is None:
        return {"message": "This took too long. Reload the page and sign in again."}, 403
    question = question_for_user(ticket.user.id, get_party(), session=db.session())
    return ask(question, purpose=_purpose(ticket))


@two_factor.post("/passkey")
@open_to_anyone
def check_passkey() -> ResponseReturnValue:
    """Take a passkey."""
    ticket, form = find_ticket(), CodeForm(formdata=None)
    if ticket is None:
        return _begin_again()
    try:
        reply = take_reply(PasskeyAnswerForm().credential.data or "", purpose=_purpose(ticket))
        proof = prove_with_passkey(
            _step(ticket),
            reply,
            PREFERRED,
            session=db.session(),
            keyring=services().keyring,
            now=now(),
        )
    except (PasskeyRefusedError, TooManyAttemptsError) as error:
        return _refused(form, ticket, error)
    return _go_on(ticket, by_password_and_passkey(proof))


def _purpose(ticket: Ticket) -> str:
    return f"second factor {ticket.number}"


def _step(ticket: Ticket) -> Step:
    return Step(
        user_id=ticket.user.id,
        address=request.remote_addr,
        limits=knock_limits(),
        mark=known_accounts().get(ticket.user.id),
    )


def _prove_with_code(ticket: Ticket, typed: str) -> CodeKind:
    return prove_with_code(
        _step(ticket), typed, session=db.session(), keyring=services().keyring, now=now()
    )


def _go_on(ticket: Ticket, methods: tuple[str, ...]) -> ResponseReturnValue:
    """Sign in, unless somebody copied the ticket and was faster."""
    if not spend(ticket):
        return _begin_again()
    return sign_in_as(Proof(user=ticket.user, methods=methods))


def _begin_again() -> ResponseReturnValue:
    if current_user.is_authenticated:
        return redirect(way_on())  # back after both steps
    flash("Sign in again: the second step has to follow the first within ten minutes.", "warning")
    return redirect(url_for("sessions.sign_in", next=wanted_page() or None))


def _refused(
    form: CodeForm, ticket: Ticket, error: InvalidError | TooManyAttemptsError
) -> ResponseReturnValue:
    """Show what is wrong; returned and not raised, so that guesses count."""
    if isinstance(error, TooManyAttemptsError):
        form.object_to("code", str(error))
        return _page(form, ticket), 429, {"Retry-After": str(error.retry_after)}
    if isinstance(error, WrongCodeError | PasskeyRefusedError):
        _note_failure(ticket, error)
        form.code.data = ""  # nobody corrects a digit of a spent code
    form.object_to(error.field, str(error))
    return _page(form, ticket), 422


def _note_failure(ticket: Ticket, error: InvalidError) -> None:
    wrong = {"wrong": "passkey" if isinstance(error, PasskeyRefusedError) else "code"}
    note(Event(kind=EventKind.SECOND_FACTOR_FAILED, user_id=ticket.user.id, details=wrong))


def _note_recovery(ticket: Ticket) -> None:
    left = factors_of(ticket.user.id, session=db.session()).recovery_codes_left
    note(
        Event(
            kind=EventKind.RECOVERY_CODE_USED,
            user_id=ticket.user.id,
            details={"left": left},
            actor=Actor(id=ticket.user.id, name=ticket.user.username),
        )
    )


def _page(form: CodeForm, ticket: Ticket) -> str:
    factors = factors_of(ticket.user.id, session=db.session())
    return render_template(
        "sessions/two_factor.html",
        form=form,
        username=ticket.user.username,
        has_app=factors.has_app,
        has_passkeys=bool(factors.passkeys) and find_party() is not None,
    )
