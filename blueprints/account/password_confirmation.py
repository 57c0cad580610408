"""Changes that want the current password first."""

from forms.account import PasswordConfirmationForm
from web.signing_in.password_confirmation import is_current_password

WRONG_PASSWORD = "Wrong current password."  # noqa: S105 - a sentence


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
