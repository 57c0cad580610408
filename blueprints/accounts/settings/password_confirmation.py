"""Password checks before sensitive changes.

Users without a password confirm a change by signing in again, with a passkey or through an identity
provider.
"""

from typing import TypeVar

from blueprints.accounts.sign_in.attempts import build_sign_in_attempt
from domain.accounts.users import authenticate_user, is_password_unchanged
from domain.core.database.locks import commit_to_release_locks
from forms.account import PasswordConfirmationForm, ProfileForm
from web.access.decorators import get_current_user, has_recent_sign_in
from web.extensions import db
from web.services import get_current_time, get_services

ConfirmationFormT = TypeVar("ConfirmationFormT", bound=PasswordConfirmationForm | ProfileForm)
_WRONG_PASSWORD_MESSAGE = "The current password is incorrect."  # noqa: S105 - a sentence
_OLD_SIGN_IN_MESSAGE = "Sign in again to confirm that it is you, then try again."


def remove_unused_password_field(form: ConfirmationFormT) -> ConfirmationFormT:
    """Remove the password field from a form if the signed-in user has no password."""
    if not get_current_user().user.has_password:
        del form.current_password
    return form


def get_confirmation_error_message() -> str:
    """Return the error message for a failed `is_current_password` check."""
    return _WRONG_PASSWORD_MESSAGE if get_current_user().user.has_password else _OLD_SIGN_IN_MESSAGE


def is_current_password(password: str) -> bool:
    """Return whether the password is correct.

    If the user has no password, return whether the sign-in is recent. Attempts count toward the
    sign-in limits. Raise TooManyAttemptsError if a limit is reached.
    """
    if not get_current_user().user.has_password:
        return has_recent_sign_in()
    session, attempt = db.session(), build_sign_in_attempt(get_current_user().username, password)
    user = authenticate_user(
        attempt, session=session, keyring=get_services().keyring, now=get_current_time()
    )
    # A correct password resets the attempt count, even if the change fails later.
    commit_to_release_locks(session)
    return user is not None and is_password_unchanged(
        user.id, user.password_changed_at, session=session
    )


def validate_with_password(form: PasswordConfirmationForm) -> bool:
    """Return whether the form is valid and contains the current password.

    If not, add the errors to the form. Raise TooManyAttemptsError after too many attempts.
    """
    if not remove_unused_password_field(form).validate_on_submit():
        return False
    is_right = is_current_password(get_entered_password(form))
    if not is_right:
        form.add_error("current_password", get_confirmation_error_message())
    return is_right


def get_entered_password(form: PasswordConfirmationForm | ProfileForm) -> str:
    """Return the entered password, or an empty string if the form has no password field."""
    return (form.current_password.data or "") if "current_password" in form else ""
