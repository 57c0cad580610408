"""What people do with the applications that they let in."""

from domain.access.actions import action
from domain.access.actor import Work
from domain.audit.events import EventKind
from domain.oauth.consent import authorized_applications


@action("authorized_applications.revoke")
def revoke_application(work: Work, application_id: int) -> str:
    """Revoke all access of an application to one's account, and return the name of it."""
    own_id = work.actor.id or 0
    name = authorized_applications.revoke_authorized(
        application_id, own_id, session=work.session, now=work.now
    )
    work.record(EventKind.CONSENT_REVOKED, subject=name, user_id=own_id)
    return name


@action("authorized_applications.revoke")
def revoke_tokens_of_passwords(work: Work) -> None:
    """Revoke all tokens that one's password was given for without an application."""
    own_id = work.actor.id or 0
    authorized_applications.revoke_without_application(own_id, session=work.session, now=work.now)
    work.record(EventKind.TOKEN_REVOKED, subject="password grant", user_id=own_id)
