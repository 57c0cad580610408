"""Accounts that people make for themselves: who may, with which address, and how one begins.

No account is stored before an address is shown to be theirs, by a link that only its reader has.
So nobody keeps an address or a user name from others, and no account has the password of a stranger
who entered an address that is not theirs.
"""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy.orm import Session

from domain.access.actor import Work
from domain.accounts.administration import add_account
from domain.accounts.attempt_limits import claim_attempt, refund_attempt
from domain.accounts.email_addresses import others_with
from domain.accounts.passwords import PasswordRules
from domain.accounts.signing_in.actions import SignInLimits
from domain.accounts.types import OwnAccountBody
from domain.accounts.users import ACTIVE, NewUser, UserView, view_of
from domain.core.database.locks import release_locks
from domain.core.errors import ConflictError, NotFoundError
from domain.core.keyring import Keyring
from models import User

LINK_LIFETIME = timedelta(days=1)
#: How the keys of messages with links begin; sent ones are removed when the links end.
MESSAGE_KEY = "sign-up "
OFF, DOMAINS, APPROVAL, OPEN = "off", "domains", "approval", "open"


@dataclass(frozen=True, kw_only=True)
class SignUpPolicy:
    """Who may make an account."""

    #: OFF, DOMAINS, APPROVAL or OPEN.
    mode: str
    #: Of e-mail addresses; empty for all.
    domains: frozenset[str] = frozenset()
    #: Whether an invitation to a project or group is enough, whatever the mode.
    takes_invited: bool = False

    @property
    def is_offered(self) -> bool:
        """Whether somebody may."""
        return self.mode != OFF

    @property
    def needs_approval(self) -> bool:
        """Whether an administrator has to approve the account."""
        return self.mode == APPROVAL

    def admits(self, email: str) -> bool:
        """Return whether a normalized address may be signed up with; subdomains differ."""
        return self.is_offered and (
            not self.domains or email.rpartition("@")[2].lower() in self.domains
        )

    def admits_invited(self, email: str) -> bool:
        """Return whether somebody who is invited by an address may make an account at once."""
        return self.takes_invited or (self.admits(email) and not self.needs_approval)


def find_owner(email: str, *, session: Session) -> UserView | None:
    """Return the account that an address belongs to, or None."""
    user_id = session.scalar(others_with(email, 0))
    return view_of(session.get_one(User, user_id)) if user_id is not None else None


def refuse_known(email: str, *, session: Session) -> None:
    """Raise NotFoundError for an address that has an account, to whoever reads its mail."""
    owner = find_owner(email, session=session)
    if owner is not None:
        message = f"There is an account for {email} already: @{owner.username}. Sign in with it."
        raise NotFoundError(message)


def make_account(work: Work, email: str, new: OwnAccountBody, *, state: str = ACTIVE) -> UserView:
    """Make the account of whoever reads the mail of an address; this confirms the address.

    Raises InvalidError for a field, NotFoundError for an address that has an account, and
    TooManyAttemptsError: taken user names are told, so the tries of an IP address are counted.
    """
    session, keyring = work.session, work.policy(Keyring)
    tries = work.policy(SignInLimits).address_limit(work.actor.source.address)
    claim_attempt(tries, session=session, keyring=keyring, now=work.now)
    release_locks(session)  # to hash a password takes a while
    wanted = NewUser(
        username=new.username,
        email=email,
        name=new.name,
        password=new.new_password,
        is_email_confirmed=True,
        state=state,
    )
    try:
        user = add_account(work, wanted, work.policy(PasswordRules))
    except ConflictError as error:
        refuse_known(email, session=session)  # Of two at once, one finds the account of the other.
        message = "This user name is taken. Choose another one."
        raise ConflictError(message, field="username") from error
    refund_attempt(tries, session=session, keyring=keyring)
    return user
