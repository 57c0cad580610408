"""Changes that want the current password first.

An account without one is confirmed by a recent sign-in: with a passkey or through a provider.
"""

from typing import TypeVar

from blueprints.accounts.signing_in.attempts import sign_in_attempt
from domain.accounts.users import authenticate, is_still_the_password
from domain.core.database.locks import release_locks
from forms.account import PasswordConfirmationForm, ProfileForm
from web.access.decorators import get_current_user, is_signed_in_afresh
from web.extensions import db
from web.services import now, services

SomeForm = TypeVar("SomeForm", bound=PasswordConfirmationForm | ProfileForm)
_WRONG_PASSWORD = "Wrong current password."  # noqa: S105 - a sentence
_OLD_SIGN_IN = "Sign in again to confirm that it is you, then repeat this."


def without_missing_password(form: SomeForm) -> SomeForm:
    """Return a form that asks only for a password that the signed-in user has."""
    if not get_current_user().user.has_password:
        del form.current_password
    return form


def refusal() -> str:
    """Return what to say where `is_current_password` was False."""
    return _WRONG_PASSWORD if get_current_user().user.has_password else _OLD_SIGN_IN


def is_current_password(password: str) -> bool:
    """Return whether this is the password of the signed-in user, or a recent sign-in without one.

    Counted with the limits of the sign-in; raises TooManyAttemptsError.
    """
    if not get_current_user().user.has_password:
        return is_signed_in_afresh()
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
    if not without_missing_password(form).validate_on_submit():
        return False
    is_right = is_current_password(password_in(form))
    if not is_right:
        form.object_to("current_password", refusal())
    return is_right


def password_in(form: PasswordConfirmationForm | ProfileForm) -> str:
    """Return the password that was entered, or an empty text where none is asked for."""
    return (form.current_password.data or "") if "current_password" in form else ""
