"""Confirms the current password before sensitive changes."""

from domain.accounts.users import authenticate, is_still_the_password
from domain.database.locks import release_locks
from web.access.marks import get_current_user
from web.extensions import db
from web.services import now, services
from web.signing_in.attempts import sign_in_attempt


def is_current_password(password: str) -> bool:
    """Return whether this is the password of the signed-in user.

    Counted with the limits of the sign-in; raises TooManyAttemptsError.
    """
    session, attempt = db.session(), sign_in_attempt(get_current_user().username, password)
    user = authenticate(attempt, session=session, keyring=services().keyring, now=now())
    # A right password resets the count, whatever becomes of the change that it is asked for.
    release_locks(session)
    return user is not None and is_still_the_password(
        user.id, user.password_changed_at, session=session
    )
