"""Ends applications and tokens together with a password change."""

from domain.oauth.consent.authorized_applications import revoke_everything
from domain.oauth.personal_tokens.tokens import revoke_own_tokens
from web.extensions import db
from web.services import now


def end_access(user_id: int, *, applications: bool, tokens: bool) -> dict[str, int]:
    """End the chosen kinds of access, and return how many there were, for the audit log."""
    ended, session, moment = {}, db.session(), now()
    if applications:
        ended["applications_ended"] = revoke_everything(user_id, session=session, now=moment)
    if tokens:
        ended["tokens_revoked"] = revoke_own_tokens(user_id, session=session, now=moment)
    return ended
