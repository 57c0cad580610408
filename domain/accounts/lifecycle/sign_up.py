"""Sign-up through a link sent by email, and approval by administrators.

A link is signed and works once. The link and the address are stored only in the email. Only the
recipient learns whether the address already has an account.
"""

from datetime import timedelta

from sqlalchemy import exists, select

from domain.access.actions import action, read_action
from domain.access.actor import LinkSigner, UnitOfWork
from domain.accounts.administration import get_account
from domain.accounts.attempt_counters import AttemptLimit, claim_single_use_value, consume_attempt
from domain.accounts.email_addresses import AccountMessageBuilder
from domain.accounts.personal_data.erasure import erase_person
from domain.accounts.sign_in.actions import SignInLimits
from domain.accounts.sign_up import (
    SIGN_UP_LINK_LIFETIME,
    SIGN_UP_MESSAGE_KEY_PREFIX,
    SignUpPolicy,
    check_no_account,
    create_own_account,
    find_account_by_email,
)
from domain.accounts.types import ApprovalResult, OwnAccountBody
from domain.accounts.users import (
    ACTIVE,
    IS_ACTIVE_HUMAN,
    PENDING,
    UserView,
    lock_account_row,
    normalize_email,
)
from domain.audit.events import EventKind
from domain.audit.seals import get_or_create_audit_key
from domain.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TooManyAttemptsError,
)
from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_hex
from domain.delivery.mail.outbox import NewEmail, queue_emails
from domain.projects.invitation_actions import accept_invitation, show_pending_invitation
from models import User
from models.case_folding import fold_text

#: Purpose in the signature of the links, which prevents other kinds of links from being accepted.
SIGN_UP_LINK_PURPOSE = "sign-up"
_USED_LINK_MESSAGE = "This link was already used. Sign in, or sign up again."


@read_action("sign_up.ask")
def show_sign_up_policy(work: UnitOfWork) -> SignUpPolicy:
    """Show the sign-up policy.

    Raise NotFoundError if sign-up is turned off.
    """
    policy = work.policy(SignUpPolicy)
    if not policy.is_offered:
        raise NotFoundError("Page not found.")
    return policy


@action("sign_up.ask")
def send_sign_up_link(work: UnitOfWork, email: str) -> None:
    """Send a sign-up link to an email address.

    The owner of an existing account is advised to sign in. Raise NotFoundError if sign-up is turned
    off. Raise InvalidError for an address that is not allowed. Raise TooManyAttemptsError for too
    many requests from one IP address. Requests above the limit for one address are ignored, so that
    its owner is not flooded with email.
    """
    address = normalize_email(email)
    if not show_sign_up_policy(work).is_address_allowed(address):
        sentence = "You cannot sign up with an email address of this domain."
        raise InvalidError(sentence, field="email")
    session, keyring, limits = work.session, work.policy(Keyring), work.policy(SignInLimits)
    from_address = limits.build_address_limit(work.actor.source.address)
    consume_attempt(from_address, session=session, keyring=keyring, now=work.now)
    to_address = AttemptLimit(
        subject=f"sign-up {fold_text(address)}", attempts=limits.per_account, window=limits.window
    )
    try:
        consume_attempt(to_address, session=session, keyring=keyring, now=work.now)
    except TooManyAttemptsError:
        return
    owner = find_account_by_email(address, session=session)
    message = (
        _build_link_message(work, address)
        if owner is None
        else _build_known_address_message(work, owner)
    )
    queue_emails((message,), session=session, keyring=keyring, now=work.now)
    work.record_audit_event(EventKind.SIGN_UP_LINK_SENT, user_id=owner.id if owner else None)


@read_action("sign_up.finish")
def get_policy_for_sign_up_link(work: UnitOfWork, email: str) -> SignUpPolicy:
    """Return the sign-up policy for the email address in a link.

    Raise NotFoundError for an address that has an account or may no longer be used to sign up.
    """
    policy = work.policy(SignUpPolicy)
    if not policy.is_address_allowed(email):
        message = f"You can no longer sign up with {email}. Ask an administrator for an account."
        raise NotFoundError(message)
    check_no_account(email, session=work.session)
    return policy


@action("sign_up.finish")
def create_account(work: UnitOfWork, email: str, number: str, new: OwnAccountBody) -> UserView:
    """Create an account with a sign-up link.

    The link then stops working. The account may need approval. Raise NotFoundError if the link was
    already used. Errors from `get_policy_for_sign_up_link` and `create_own_account` are passed on.
    """
    needs_approval = get_policy_for_sign_up_link(work, email).needs_approval
    user = create_own_account(work, email, new, state=PENDING if needs_approval else ACTIVE)
    session, keyring = work.session, work.policy(Keyring)
    once = f"sign-up {number}"
    if not claim_single_use_value(
        once, lifetime=SIGN_UP_LINK_LIFETIME, session=session, keyring=keyring, now=work.now
    ):
        raise NotFoundError(_USED_LINK_MESSAGE)
    if needs_approval:
        _notify_administrators(work, user.id)
    return user


@action("invitations.join")
def create_invited_account(
    work: UnitOfWork, invitation_id: int, email: str, new: OwnAccountBody
) -> UserView:
    """Create an account for an invited person, and accept the invitation.

    Raise ForbiddenError if an invitation is not sufficient to create an account. Errors from
    `show_pending_invitation` and `create_own_account` are passed on.
    """
    show_pending_invitation(work, invitation_id, email)
    if not work.policy(SignUpPolicy).is_invited_address_allowed(email):
        raise ForbiddenError("Ask an administrator for an account with this email address first.")
    user = create_own_account(work, email, new)
    accept_invitation(work.with_actor(user.id, user.username), invitation_id, email)
    return user


@action("users.approve")
def approve_user(work: UnitOfWork, user_id: int) -> ApprovalResult:
    """Approve an account, so that its owner can sign in.

    The owner is notified by email.

    Raise NotFoundError if the account does not exist. Raise ConflictError if it is not waiting for
    approval.
    """
    user = _get_pending_user(work, user_id)
    work.session.get_one(User, user_id).state = ACTIVE
    sign_in = f"{work.settings.base_url}/users/sign_in"
    _notify_user(work, user, f"Your account @{user.username} was approved. Sign in:\n{sign_in}")
    work.record_audit_event(EventKind.USER_APPROVED, user_id=user_id, subject=user.username)
    return ApprovalResult()


@action("users.reject")
def reject_user(work: UnitOfWork, user_id: int) -> ApprovalResult:
    """Reject an account that is waiting for approval, and delete it.

    The owner is notified by email.

    Raise NotFoundError if the account does not exist. Raise ConflictError if it is not waiting for
    approval.
    """
    user = _get_pending_user(work, user_id)
    key = get_or_create_audit_key(session=work.session, keyring=work.policy(Keyring), now=work.now)
    done = erase_person(work, user, heir=None, audit_key=key)
    _notify_user(
        work, user, f"Your account @{user.username} was not approved and has been deleted."
    )
    work.record_audit_event(EventKind.USER_REJECTED, subject=done.pseudonym)
    return ApprovalResult()


def _get_pending_user(work: UnitOfWork, user_id: int) -> UserView:
    get_account(user_id, session=work.session)
    # Of two concurrent requests, one finds that the account was already approved or rejected.
    lock_account_row(user_id, session=work.session)
    user = get_account(user_id, session=work.session)
    if user.state != PENDING:
        raise ConflictError("This account is not pending approval.")
    return user


def _notify_administrators(work: UnitOfWork, user_id: int) -> None:
    """Notify administrators that an account is waiting for approval.

    While other accounts are waiting, administrators are notified at most once a day.
    """
    session, head = work.session, work.policy(AccountMessageBuilder)
    administrators = session.scalars(
        select(User)
        .where(User.is_admin, IS_ACTIVE_HUMAN)
        .order_by(User.id)
        # The second of two concurrent requests waits, and finds the account that the first created.
        .with_for_update(key_share=True)
    ).all()
    others = select(exists().where(User.state == PENDING, User.id != user_id))
    once, day = "administrators told of sign-ups", timedelta(days=1)
    is_due = claim_single_use_value(
        once, lifetime=day, session=session, keyring=head.keyring, now=work.now
    )
    if not is_due and session.scalar(others):
        return
    messages = [
        head.build_address_message(
            f"sign-ups at {work.now.isoformat()}, to {each.id}",
            each.email,
            f"Accounts are waiting for approval at {head.instance_name}",
            "Someone signed up. Approve or reject the pending accounts:\n"
            f"{head.base_url}/admin/users?group=pending\n\n"
            "While accounts are pending, you get this message at most once a day.",
        )
        for each in administrators
    ]
    queue_emails(messages, session=work.session, keyring=work.policy(Keyring), now=work.now)


def _build_link_message(work: UnitOfWork, address: str) -> NewEmail:
    head, sealed = (
        work.policy(AccountMessageBuilder),
        work.policy(LinkSigner).sign([address, generate_random_hex(16)], SIGN_UP_LINK_PURPOSE),
    )
    return head.build_address_message(
        f"{SIGN_UP_MESSAGE_KEY_PREFIX}{head.keyring.compute_digest(sealed).hex()}",
        address,
        f"Your new account at {head.instance_name}",
        f"Someone wants to create an account at {head.instance_name} with this email address, from "
        f"the IP address {work.actor.source.address}. To continue, open this link within a day:\n"
        f"{head.base_url}/users/sign_up/{sealed}\n\n"
        "The link works once. If this was not you, ignore this message, and no account is created.",
    )


def _build_known_address_message(work: UnitOfWork, owner: UserView) -> NewEmail:
    """Return the message to an existing account about a sign-up with its address.

    The message is sent to the address of the account, which may be spelled differently.
    """
    head = work.policy(AccountMessageBuilder)
    return head.build_account_message(
        owner.id,
        owner.email,
        f"You already have an account at {head.instance_name}",
        "Someone tried to create an account with this email address, from the IP address "
        f"{work.actor.source.address}. You already have an account: @{owner.username}. Sign in:\n"
        f"{head.base_url}/users/sign_in\n\n"
        f"If you forgot your password, choose a new one:\n{head.base_url}/users/password/new\n\n"
        "If this was not you, ignore this message.",
        secret=work.now.isoformat(),
    )


def _notify_user(work: UnitOfWork, user: UserView, text: str) -> None:
    """Notify a user of the decision about their account, if this service sends email."""
    head = work.policy(AccountMessageBuilder)
    if head.has_mail_server:
        key, subject = f"decision on account {user.id}", f"Your account at {head.instance_name}"
        message = head.build_address_message(key, user.email, subject, text)
        queue_emails((message,), session=work.session, keyring=work.policy(Keyring), now=work.now)
