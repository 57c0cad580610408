"""The page on which an invited person accepts."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.errors import NotFoundError
from domain.projects import invitation_actions as actions
from domain.projects.member_types import INVITATION_LIFETIME
from web.access.marks import signed_in
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.sealing.sealer import BrokenSealError, unseal

invitations = PageBlueprint("invitations", __name__, url_prefix="/-/invitations")


@invitations.get("/<sealed>")
@signed_in
def show(sealed: str) -> ResponseReturnValue:
    """Show what an invitation offers."""
    invitation = actions.show_offer(work(), *_opened(sealed))
    return render_template("members/invitation.html", invitation=invitation, sealed=sealed)


@invitations.post("/<sealed>")
@signed_in
def accept(sealed: str) -> ResponseReturnValue:
    """Accept an invitation."""
    path = actions.accept(work(), *_opened(sealed)).path
    flash(f"You are a member of {path}.")
    return redirect(url_for("projects.show_namespace", full_path=path))


def _opened(sealed: str) -> tuple[int, str]:
    """Return the id and the address in a link, or raise NotFoundError."""
    try:
        number, email = unseal(sealed, purpose=actions.SEALED_FOR, lifetime=INVITATION_LIFETIME)
    except BrokenSealError as error:
        message = "This invitation has expired, or its link is incomplete."
        raise NotFoundError(message) from error
    return int(number), str(email)
