"""Is it still who signed in? The current password says so: a browser left open is no proof."""

from domain.accounts.users import authenticate
from web.extensions import db
from web.http.access import visitor
from web.services import now, services
from web.signing_in.attempts import knock_of


def is_current_password(password: str) -> bool:
    """Tell whether this is the visitor's password.

    Asked as the sign-in asks, with the same limits: raises TooManyAttemptsError.
    """
    knock = knock_of(visitor().username, password)
    user = authenticate(knock, session=db.session(), keyring=services().keyring, now=now())
    return user is not None
