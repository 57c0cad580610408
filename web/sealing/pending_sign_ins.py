"""Who has given their password and owes a second factor, sealed in the session.

It names an account and the password that was right: once that is changed, or the account locked,
it is worthless. It is good for ten minutes and for one sign-in, even if the cookie was copied.
"""

from dataclasses import dataclass
from datetime import timedelta

from flask import session
from flask_login import current_user, login_user

from domain.accounts.attempt_limits import claim_once
from domain.accounts.factors.second_factors import has_second_factor
from domain.accounts.users import find_entrant
from domain.randomness import random_hex
from models import User
from web.extensions import db
from web.http.access import visitor
from web.sealing.sealer import BrokenSealError, seal, unseal
from web.services import now, services

_PLACE = "two_factor"
_PURPOSE = "second factor"
_LIFETIME = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """Somebody between the password and the second factor."""

    number: str
    user: User


def give_ticket(user: User) -> None:
    """Put a ticket into the session, and nothing else that was there before.

    Who proves again who they are stays signed in meanwhile.
    """
    is_again = current_user.is_authenticated and current_user.id == user.id
    known = visitor() if is_again else None
    session.clear()
    if known is not None:
        login_user(known)
        session.permanent = True
    sealed = {"number": random_hex(16), "user": user.id, "password": _password_of(user)}
    session[_PLACE] = seal(sealed, purpose=_PURPOSE)


def find_ticket() -> Ticket | None:
    """Return the ticket of this session, if it is good still."""
    try:
        sealed = unseal(session.get(_PLACE, ""), purpose=_PURPOSE, lifetime=_LIFETIME)
    except BrokenSealError:
        return None
    user = find_entrant(sealed["user"], session=db.session())
    if user is None or _password_of(user) != sealed["password"]:
        return None
    if not has_second_factor(user.id, session=db.session()):
        return None  # there is nothing to ask for any more: the password will do
    return Ticket(number=sealed["number"], user=user)


def spend(ticket: Ticket) -> bool:
    """Tell whether the ticket was not used before; from now on it was."""
    return claim_once(
        f"second factor ticket {ticket.number}",
        lifetime=_LIFETIME,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )


def _password_of(user: User) -> str:
    """Return what changes with the password and tells nothing of it."""
    return user.password_changed_at.isoformat() if user.password_changed_at else "the first one"
