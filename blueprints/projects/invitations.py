"""The page where a person accepts an invitation, with an existing or a new account."""

from typing import NamedTuple

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
from web.http.unit_of_work import get_unit_of_work
from web.sealing.sealed_values import SECRET_URL_HEADERS, BrokenSealError, unseal_text
from web.services import get_settings, get_sign_up_policy

invitations = PageBlueprint("invitations", __name__, url_prefix="/-/invitations")


class _InvitationLink(NamedTuple):
    """The content of an invitation link."""

    id: int
    email: str
    group_id: int | None = None
    project_id: int | None = None


@invitations.get("/<sealed>")
@open_to_anyone
def show(sealed: str) -> ResponseReturnValue:
    """Show an invitation, or the form that creates an account to accept the invitation."""
    link = _parse_link(sealed)
    try:
        invitation = actions.show_pending_invitation(get_unit_of_work(), link.id, link.email)
    except NotFoundError as error:
        return _redirect_member(link, error)
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
    """Accept an invitation, and create an account for visitors who have no account."""
    if not current_user.is_authenticated:
        return _create_account_and_join(sealed)
    link = _parse_link(sealed)
    try:
        invitation = actions.accept_invitation(get_unit_of_work(), link.id, link.email)
    except NotFoundError as error:
        return _redirect_member(link, error)
    return _redirect_to_namespace(invitation.path)


def _create_account_and_join(sealed_text: str) -> ResponseReturnValue:
    form, link = NewAccountForm(), _parse_link(sealed_text)
    invitation = actions.show_pending_invitation(get_unit_of_work(), link.id, link.email)
    try:
        made = form.run_if_valid(lambda: _create_account(link, form))
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
    return _redirect_to_namespace(invitation.path)


def _create_account(link: _InvitationLink, form: NewAccountForm) -> UserView:
    return sign_up.create_invited_account(
        get_unit_of_work(), link.id, link.email, form.build_entered_body(OwnAccountBody)
    )


def _redirect_member(link: _InvitationLink, error: NotFoundError) -> ResponseReturnValue:
    """Redirect a member whose invitation is no longer pending, and raise the error for others."""
    path = actions.find_invited_namespace_path(
        get_unit_of_work(), link.email, link.group_id, link.project_id
    )
    if path is None:
        raise error
    return _redirect_to_namespace(path)


def _redirect_to_namespace(path: str) -> ResponseReturnValue:
    flash(f"You are a member of {path}.")
    return redirect(url_for("projects.show_namespace", full_path=path))


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


def _parse_link(sealed_text: str) -> _InvitationLink:
    """Return the content of a link.

    Raise NotFoundError if the link is expired or incomplete.
    """
    try:
        return _InvitationLink(
            *unseal_text(
                sealed_text, purpose=actions.INVITATION_SEAL_PURPOSE, lifetime=INVITATION_LIFETIME
            )
        )
    except BrokenSealError as error:
        raise NotFoundError(
            "This invitation has expired, or its link is incomplete. Ask for a new invitation."
        ) from error
