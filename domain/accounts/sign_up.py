"""The sign-up policy, and the creation of accounts by their owners.

An account is stored only after a link has proved that the address belongs to its owner. This
prevents users from blocking the addresses and usernames of others. It also prevents accounts whose
password was set by a stranger who entered someone else's address.
"""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.accounts.administration import add_account
from domain.accounts.attempt_counters import consume_attempt, refund_attempt
from domain.accounts.email_addresses import select_other_account
from domain.accounts.passwords import PasswordRules
from domain.accounts.sign_in.actions import SignInLimits
from domain.accounts.types import OwnAccountBody
from domain.accounts.users import ACTIVE, NewUser, UserView, build_user_view
from domain.core.database.locks import commit_to_release_locks
from domain.core.errors import ConflictError, NotFoundError
from domain.core.keyring import Keyring
from models import User

SIGN_UP_LINK_LIFETIME = timedelta(days=1)
#: Key prefix for messages with links. Sent messages are deleted when their links expire.
SIGN_UP_MESSAGE_KEY_PREFIX = "sign-up "
SIGN_UP_OFF, SIGN_UP_BY_DOMAIN, SIGN_UP_WITH_APPROVAL, SIGN_UP_OPEN = (
    "off",
    "domains",
    "approval",
    "open",
)


@dataclass(frozen=True, kw_only=True)
class SignUpPolicy:
    """The policy that determines who may create an account."""

    #: Mode of the policy: SIGN_UP_OFF, SIGN_UP_BY_DOMAIN, SIGN_UP_WITH_APPROVAL or SIGN_UP_OPEN.
    mode: str
    #: Allowed domains of email addresses. Empty if all domains are allowed.
    domains: frozenset[str] = frozenset()
    #: True if an invitation to a project or group is sufficient in every mode.
    takes_invited: bool = False

    @property
    def is_offered(self) -> bool:
        """True if sign-up is turned on."""
        return self.mode != SIGN_UP_OFF

    @property
    def needs_approval(self) -> bool:
        """True if an administrator has to approve each account."""
        return self.mode == SIGN_UP_WITH_APPROVAL

    def is_address_allowed(self, email: str) -> bool:
        """Return whether a normalized address may be used to sign up.

        Subdomains of an allowed domain are not included.
        """
        return self.is_offered and (
            not self.domains or email.rpartition("@")[2].lower() in self.domains
        )

    def is_invited_address_allowed(self, email: str) -> bool:
        """Return whether a person who was invited by email may create an account immediately."""
        return self.takes_invited or (self.is_address_allowed(email) and not self.needs_approval)


def find_account_by_email(email: str, *, session: Session) -> UserView | None:
    """Return the account with this email address, or None."""
    user_id = session.scalar(select_other_account(email, 0))
    return build_user_view(session.get_one(User, user_id)) if user_id is not None else None


def check_no_account(email: str, *, session: Session) -> None:
    """Check that an email address has no account.

    Raise NotFoundError with the username if an account has the address. Only the recipient of a
    link sees this error.
    """
    owner = find_account_by_email(email, session=session)
    if owner is not None:
        message = f"An account for {email} already exists: @{owner.username}. Sign in with it."
        raise NotFoundError(message)


def create_own_account(
    work: UnitOfWork, email: str, own_account_body: OwnAccountBody, *, state: str = ACTIVE
) -> UserView:
    """Create an account for the verified owner of an address, which confirms the address.

    Raise InvalidError or ConflictError, with the name of the field, if a value is not accepted.
    Raise NotFoundError for an address that has an account. Raise TooManyAttemptsError for too many
    requests from one IP address: requests are counted because the response reveals which usernames
    are taken.
    """
    session, keyring = work.session, work.policy(Keyring)
    tries = work.policy(SignInLimits).build_address_limit(work.actor.source.address)
    consume_attempt(tries, session=session, keyring=keyring, now=work.now)
    commit_to_release_locks(session)  # Hashing a password takes time.
    wanted = NewUser(
        username=own_account_body.username,
        email=email,
        name=own_account_body.name,
        password=own_account_body.new_password,
        is_email_confirmed=True,
        state=state,
    )
    try:
        user = add_account(work, wanted, work.policy(PasswordRules))
    except ConflictError as error:
        # The second of two concurrent requests finds the account that the first created.
        check_no_account(email, session=session)
        message = "This username is taken. Choose another name."
        raise ConflictError(message, field="username") from error
    refund_attempt(tries, session=session, keyring=keyring)
    return user
