"""Confirms the current password before sensitive changes."""

from domain.accounts.users import authenticate
from web.access.marks import get_current_user
from web.extensions import db
from web.services import now, services
from web.signing_in.attempts import sign_in_attempt


def is_current_password(password: str) -> bool:
    """Return whether this is the password of the signed-in user.

    Counted with the limits of the sign-in; raises TooManyAttemptsError.
    """
    attempt = sign_in_attempt(get_current_user().username, password)
    user = authenticate(attempt, session=db.session(), keyring=services().keyring, now=now())
    return user is not None
