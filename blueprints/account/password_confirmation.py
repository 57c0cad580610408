"""Changes that want the current password first."""

from domain.accounts.users import authenticate, is_still_the_password
from domain.database.locks import release_locks
from forms.account import PasswordConfirmationForm
from web.access.marks import get_current_user
from web.extensions import db
from web.services import now, services
from web.signing_in.attempts import sign_in_attempt

WRONG_PASSWORD = "Wrong current password."  # noqa: S105 - a sentence


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


def is_confirmed(form: PasswordConfirmationForm) -> bool:
    """Return whether a valid form came with the current password; its errors say what is wrong.

    Raises TooManyAttemptsError.
    """
    if not form.validate_on_submit():
        return False
    is_right = is_current_password(form.current_password.data or "")
    if not is_right:
        form.object_to("current_password", WRONG_PASSWORD)
    return is_right
