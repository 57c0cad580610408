"""The links of invitations, and the messages that bring them."""

from flask import url_for

from domain.mail.outbox import NewMessage
from domain.projects.invitations import INVITATION_LIFETIME, InvitationView
from web.http.public_urls import public_url
from web.sealing.sealer import BrokenSealError, seal, unseal
from web.services import settings

_PURPOSE = "invitation"


def invitation_message(invitation: InvitationView) -> NewMessage:
    """Return the message with the link that accepts an invitation."""
    sealed = seal([invitation.id, invitation.email], purpose=_PURPOSE)
    link = public_url(url_for("invitations.show", sealed=sealed))
    current, path = settings(), invitation.namespace.path
    return NewMessage(
        key=f"invitation {invitation.id} of {invitation.created_at.isoformat()}",
        recipient=invitation.email,
        subject=f"{invitation.invited_by} invites you to {path}",
        text=(
            f"Hello,\n\n{invitation.invited_by} invites you to join {path} as "
            f"{invitation.role.label}.\n\nSign in with this e-mail address and accept, within "
            f"{INVITATION_LIFETIME.days} days:\n{link}\n\n"
            "If you do not want to join, you can ignore this message.\n\n"
            f"-- \n{current.instance_name}, {current.base_url}\n"
        ),
    )


def read_link(sealed: str) -> tuple[int, str] | None:
    """Return the id and the address in a link, or None for one that is forged or too old."""
    try:
        number, email = unseal(sealed, purpose=_PURPOSE, lifetime=INVITATION_LIFETIME)
    except BrokenSealError:
        return None
    return int(number), str(email)
