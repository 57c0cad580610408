"""Ends applications, tokens and a wish for another address together with a password change."""

from domain.access.actor import Work
from domain.accounts.email_addresses import forget_new_address
from domain.oauth.consent.authorized_applications import list_authorized, revoke_everything
from domain.oauth.personal_tokens.lists import TokenFilter, count_tokens
from domain.oauth.personal_tokens.tokens import revoke_own_tokens


def granted_access(work: Work, user_id: int) -> dict[str, bool]:
    """Return which kinds of access there are to end, as the page to change a password asks."""
    own = TokenFilter(owner_id=user_id, user_id=user_id, is_active=True)
    return {
        "has_applications": bool(list_authorized(user_id, session=work.session, now=work.now)),
        "has_tokens": count_tokens(own, session=work.session, now=work.now) > 0,
    }


def end_access(work: Work, user_id: int, *, applications: bool, tokens: bool) -> dict[str, int]:
    """End the chosen kinds of access, and return how many there were, for the audit log.

    A new e-mail address that waits is forgotten: whoever knew the former password may have asked
    for it.
    """
    ended = {}
    forget_new_address(user_id, session=work.session)
    if applications:
        ended["applications_ended"] = revoke_everything(user_id, session=work.session, now=work.now)
    if tokens:
        ended["tokens_revoked"] = revoke_own_tokens(user_id, session=work.session, now=work.now)
    return ended
