"""The page where a person accepts an invitation, with an existing or a new account."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from blueprints.accounts.sign_in.attempts import create_sign_in_and_redirect
from domain.accounts.lifecycle import sign_up
from domain.accounts.sign_in.sessions import PASSWORD_METHODS, Authentication
from domain.accounts.sign_up import find_account_by_email
from domain.accounts.types import OwnAccountBody
from domain.accounts.users import UserView
from domain.core.errors import NotFoundError, TooManyAttemptsError
from domain.projects import invitation_actions as actions
from domain.projects.member_types import INVITATION_LIFETIME, Invitation
from forms.account import NewAccountForm
from web.access.decorators import open_to_anyone, redirect_to_sign_in
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import get_unit_of_work
from web.sealing.sealer import SECRET_URL_HEADERS, BrokenSealError, unseal_text
from web.services import get_settings, get_sign_up_policy

invitations = PageBlueprint("invitations", __name__, url_prefix="/-/invitations")


@invitations.get("/<sealed>")
@open_to_anyone
def show(sealed: str) -> ResponseReturnValue:
    """Show an invitation, or the form that creates an account to accept the invitation."""
    invitation = actions.show_pending_invitation(get_unit_of_work(), *_parse_link(sealed))
    owner = find_account_by_email(invitation.invite_email, session=db.session())
    if owner is not None and not current_user.is_authenticated:
        return redirect_to_sign_in()
    policy, is_here = get_sign_up_policy(), current_user.is_authenticated
    if not is_here and policy.is_invited_address_allowed(invitation.invite_email):
        return _render_account_page(NewAccountForm(formdata=None), invitation, sealed)
    return render_template(
        "members/invitation.html",
        invitation=invitation,
        sealed=sealed,
        is_for_you=is_here and owner is not None and owner.id == current_user.id,
        may_sign_up=policy.is_address_allowed(invitation.invite_email),
    )


@invitations.post("/<sealed>")
@open_to_anyone
def accept(sealed: str) -> ResponseReturnValue:
    """Accept an invitation; for visitors without an account, create an account first."""
    if not current_user.is_authenticated:
        return _create_account_and_join(sealed)
    return _redirect_to_namespace(
        actions.accept_invitation(get_unit_of_work(), *_parse_link(sealed))
    )


def _create_account_and_join(sealed_text: str) -> ResponseReturnValue:
    form, opened = NewAccountForm(), _parse_link(sealed_text)
    invitation = actions.show_pending_invitation(get_unit_of_work(), *opened)
    try:
        made = form.run_if_valid(lambda: _create_account(opened, form))
    except TooManyAttemptsError as error:
        form.add_error("username", str(error))
        page, _, headers = _render_account_page(form, invitation, sealed_text)
        return page, 429, {**headers, "Retry-After": str(error.retry_after)}
    except NotFoundError as error:
        flash(str(error), "warning")
        return redirect(url_for("sessions.sign_in"))
    if made is None:
        return _render_account_page(form, invitation, sealed_text)
    create_sign_in_and_redirect(Authentication(user_id=made.id, methods=PASSWORD_METHODS))
    return _redirect_to_namespace(invitation)


def _create_account(opened: tuple[int, str], form: NewAccountForm) -> UserView:
    return sign_up.create_invited_account(
        get_unit_of_work(), *opened, form.build_entered_body(OwnAccountBody)
    )


def _redirect_to_namespace(invitation: Invitation) -> ResponseReturnValue:
    flash(f"You are a member of {invitation.path}.")
    return redirect(url_for("projects.show_namespace", full_path=invitation.path))


def _render_account_page(
    form: NewAccountForm, invitation: Invitation, sealed_text: str
) -> tuple[str, int, dict[str, str]]:
    page = render_template(
        "sessions/new_account.html",
        form=form,
        email=invitation.invite_email,
        invitation=invitation,
        target=url_for("invitations.accept", sealed=sealed_text),
        minimum=get_settings().password_min_length,
    )
    return page, 422 if form.errors else 200, SECRET_URL_HEADERS


def _parse_link(sealed_text: str) -> tuple[int, str]:
    """Return the invitation ID and the email address from a link.

    Raise NotFoundError if the link is expired or incomplete.
    """
    try:
        number, email = unseal_text(
            sealed_text, purpose=actions.INVITATION_SEAL_PURPOSE, lifetime=INVITATION_LIFETIME
        )
    except BrokenSealError as error:
        raise NotFoundError(
            "This invitation has expired, or its link is incomplete. Ask for a new invitation."
        ) from error
    return int(number), str(email)
