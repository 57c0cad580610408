"""What else opens an account than its password: ended together with a password that leaked."""

from domain.oauth.consent.authorized_applications import revoke_everything
from domain.oauth.personal_tokens.tokens import revoke_own_tokens
from web.extensions import db
from web.services import now


def end_access(user_id: int, *, applications: bool, tokens: bool) -> dict[str, int]:
    """End what is asked for, and return how many there were, for the audit trail."""
    ended, session, moment = {}, db.session(), now()
    if applications:
        ended["applications_ended"] = revoke_everything(user_id, session=session, now=moment)
    if tokens:
        ended["tokens_revoked"] = revoke_own_tokens(user_id, session=session, now=moment)
    return ended
