"""An authorization request that came in a form, as the address that asks the same.

An application may ask by POST (OpenID Connect Core section 3.1.2.1), from its own origin; the
browser leaves our cookie behind then, so that nobody knows who is signed in. The request goes on
as a GET, with which the cookie comes, and which decides nothing without the user.
"""

from urllib.parse import urlencode

from flask import url_for
from werkzeug.datastructures import MultiDict

from domain.errors import DomainError

#: The web server reads a line of 8190 characters, with the method and the version.
_LONGEST = 8000


class LongRequestError(DomainError):
    """The parameters do not fit into an address."""

    def __init__(self) -> None:
        """Say what is wrong."""
        super().__init__("The authorization request of the application is too long.")


def address_for(parameters: MultiDict[str, str]) -> str:
    """Return the address, with every value of every parameter, or raise LongRequestError."""
    address = f"{url_for('authorize.consent')}?{urlencode(list(parameters.items(multi=True)))}"
    if len(address) > _LONGEST:
        raise LongRequestError
    return address
