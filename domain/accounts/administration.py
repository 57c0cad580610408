"""Changes that administrators make to accounts.

`domain/accounts/lifecycle/actions.py` records most changes in the audit log.
"""

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.accounts.email_addresses import (
    confirm_current_address,
    delete_unconfirmed_address,
    notify_previous_address,
    send_confirmation_link,
)
from domain.accounts.names import check_username
from domain.accounts.passwords import PasswordRules, hash_password
from domain.accounts.sign_in.sessions import close_all_sign_ins
from domain.accounts.types import AccountChangeBody
from domain.accounts.users import (
    ACTIVE,
    BOT,
    DEACTIVATED,
    ERASED,
    HUMAN,
    IS_ACTIVE_HUMAN,
    PENDING,
    SERVICE,
    NewUser,
    UserView,
    build_user_view,
    check_not_group_name,
    create_user,
    normalize_email,
    reset_failed_sign_ins,
    validate_display_name,
)
from domain.audit.events import EventKind
from domain.core.database.locks import commit_to_release_locks
from domain.core.database.pagination import MAX_ID
from domain.core.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_password
from domain.core.time_zones import normalize_zone_name
from models import User
from models.case_folding import fold_text

LOCKED = "locked"
#: Endings of error messages about machine accounts, by kind of account. Each ending names the
#: owner, and explains how to delete the account.
_MACHINE_ACCOUNT_ADVICE = {
    BOT: "an access token. Revoke the token",
    SERVICE: "an application. Turn off the service account of the application",
}


def get_account(user_id: int, *, session: Session) -> UserView:
    """Return the account with this ID.

    Raise NotFoundError if the account does not exist or was erased.
    """
    return build_user_view(_get_account_row(user_id, session=session))


def _get_account_row(user_id: int, *, session: Session) -> User:
    found = session.get(User, user_id) if user_id <= MAX_ID else None
    if found is None or found.kind == ERASED:
        raise NotFoundError("User not found.")
    return found


def generate_password(username: str) -> str:
    """Return a random password that does not contain the username."""
    while username.lower() in (password := generate_random_password()):
        pass
    return password


def add_account(work: UnitOfWork, new_user: NewUser, rules: PasswordRules) -> UserView:
    """Create an account and record it in the audit log.

    Raise InvalidError or ConflictError, with the name of the field, if a value is not accepted.
    """
    user = create_user(new_user, session=work.session, now=work.now, rules=rules)
    details: dict[str, object] = {"administrator": user.is_admin}
    details |= {"state": user.state} if user.state != ACTIVE else {}
    work.record_audit_event(
        EventKind.USER_CREATED, subject=user.username, details=details, user_id=user.id
    )
    return user


def change_account(
    work: UnitOfWork, user_id: int, account_change_body: AccountChangeBody
) -> tuple[str, ...]:
    """Change an account, and return the names of the changed fields.

    A new email address replaces the current address immediately, and the previous address is
    notified. The user must confirm the new address unless the administrator has confirmed it.

    Raise NotFoundError if the account does not exist, and InvalidError for an invalid value. Raise
    ConflictError for bots and for the last administrator, and if administrators change their own
    role or email address. An address gives access to the account, so users must enter their
    password to change their own address.
    """
    user = _get_account_row(user_id, session=work.session)
    _check_is_human_account(user)
    fields = ("username", "name", "email", "time_zone", "is_admin", "email_confirmed_at")
    before = {field: getattr(user, field) for field in fields}
    _change_account_fields(work, user, account_change_body)
    if user.email != before["email"]:
        user.email_confirmed_at = None
        delete_unconfirmed_address(user_id, session=work.session)
        notify_previous_address(work, user_id, str(before["email"]))
    if account_change_body.is_email_confirmed:
        confirm_current_address(work, user_id)
    elif user.email != before["email"]:
        send_confirmation_link(work, user_id)
    if account_change_body.admin and not user.is_admin:
        user.is_admin = True
    if account_change_body.admin is False and user.is_admin:
        _revoke_administrator(work, user)
    return tuple(field for field, value in before.items() if getattr(user, field) != value)


def _change_account_fields(
    work: UnitOfWork, user: User, account_change_body: AccountChangeBody
) -> None:
    """Change the username, the display name, the email address and the time zone."""
    username = (
        user.username
        if account_change_body.username is None
        else _validate_username(account_change_body.username)
    )
    if username != user.username:
        check_not_group_name(username, session=work.session, user_id=user.id)
    place = (
        user.time_zone
        if account_change_body.time_zone is None
        else normalize_zone_name(account_change_body.time_zone)
    )
    name = user.name if account_change_body.name is None else account_change_body.name
    validate_display_name(name)
    email = (
        user.email
        if account_change_body.email is None
        else normalize_email(account_change_body.email)
    )
    if email != user.email:
        _check_not_own_account(work, user.id, "Change your own email address in your settings.")
    try:
        with work.session.begin_nested():
            user.username, user.name, user.email, user.time_zone = username, name, email, place
    except IntegrityError as error:
        raise _build_name_taken_error(user.id, username, session=work.session) from error


def _validate_username(username: str) -> str:
    try:
        check_username(username)
    except ValueError as error:
        raise InvalidError(str(error), field="username") from error
    return username


def _build_name_taken_error(user_id: int, username: str, *, session: Session) -> ConflictError:
    """Return the error for a username or an email address that another user has."""
    others = select(User.id).where(User.username_key == fold_text(username), User.id != user_id)
    if session.scalar(others) is not None:
        return ConflictError("This username is taken.", field="username")
    return ConflictError("Another user has this email address.", field="email")


def lock_account(work: UnitOfWork, user_id: int) -> bool:
    """Lock an account and sign its owner out everywhere.

    Its password and its tokens stop working. Return False if the account was already locked. Raise
    NotFoundError if it does not exist. Raise ConflictError for the administrator's own account and
    for the last administrator.
    """
    user = _get_account_row(user_id, session=work.session)
    _check_not_own_account(
        work, user_id, "You cannot lock your own account. Ask another administrator."
    )
    _check_other_administrator_exists(user_id, session=work.session)
    was_locked = user.state == LOCKED
    user.state = LOCKED
    close_all_sign_ins(user_id, session=work.session)
    return not was_locked


def unlock_account(work: UnitOfWork, user_id: int) -> None:
    """Unlock an account and reset its count of failed sign-in attempts.

    Raise NotFoundError if the account does not exist. Raise ConflictError if it is deactivated or
    pending approval.
    """
    user = _get_account_row(user_id, session=work.session)
    if user.state == PENDING:
        raise ConflictError("This account is pending approval. Approve or reject it.")
    if user.state == DEACTIVATED:
        raise ConflictError("This account is deactivated. Activate it instead.")
    user.state = ACTIVE
    reset_failed_sign_ins(user.username, session=work.session, keyring=work.policy(Keyring))


def deactivate_account(work: UnitOfWork, user_id: int) -> bool:
    """Deactivate an account until its owner signs in.

    Its tokens stop working. Return whether the account was active. Raise NotFoundError if it does
    not exist. Raise ForbiddenError if it is neither active nor deactivated. Raise ConflictError for
    the administrator's own account, for bots and for the last administrator.
    """
    user = _get_account_row(user_id, session=work.session)
    _check_is_human_account(user)
    _check_not_own_account(work, user_id, "You cannot deactivate your own account.")
    _check_is_active_or_deactivated(user)
    _check_other_administrator_exists(user_id, session=work.session)
    return _deactivate_account_row(user, session=work.session)


def deactivate_idle_account(user_id: int, *, session: Session) -> bool:
    """Deactivate an unused account.

    Return False for the last administrator, whose account is not deactivated.
    """
    try:
        _check_other_administrator_exists(user_id, session=session)
    except ConflictError:
        return False
    return _deactivate_account_row(session.get_one(User, user_id), session=session)


def _deactivate_account_row(user: User, *, session: Session) -> bool:
    was_active = user.state == ACTIVE
    user.state = DEACTIVATED
    close_all_sign_ins(user.id, session=session)
    return was_active


def activate_account(work: UnitOfWork, user_id: int) -> bool:
    """Activate a deactivated account.

    Return whether the account was deactivated. Raise NotFoundError if the account does not exist.
    Raise ForbiddenError if it is neither active nor deactivated.
    """
    user = _get_account_row(user_id, session=work.session)
    _check_is_active_or_deactivated(user)
    was_deactivated = user.state == DEACTIVATED
    # The period of inactivity starts again.
    user.state, user.idle_noticed_at = ACTIVE, None
    return was_deactivated


def _check_is_active_or_deactivated(user: User) -> None:
    if user.state not in {ACTIVE, DEACTIVATED}:
        message = f"The account {user.username} is {user.state}. It must be active or deactivated."
        raise ForbiddenError(message)


def replace_password(work: UnitOfWork, user_id: int) -> str:
    """Set a random password for an account, sign it out everywhere, and return the password.

    The user must change the password at the next sign-in. Raise NotFoundError if the account does
    not exist. Raise ConflictError for the administrator's own account and for bots.
    """
    user = _get_account_row(user_id, session=work.session)
    _check_not_own_account(work, user_id, "Change your own password in your settings.")
    _check_is_human_account(user)
    password = generate_password(user.username)
    commit_to_release_locks(work.session)
    user.password_hash = hash_password(password, work.policy(PasswordRules).cost)
    user.password_changed_at = work.now
    user.must_change_password = True
    reset_failed_sign_ins(user.username, session=work.session, keyring=work.policy(Keyring))
    close_all_sign_ins(user_id, session=work.session)
    return password


def _revoke_administrator(work: UnitOfWork, user: User) -> None:
    message = "You cannot revoke your own administrator role. Ask another administrator."
    _check_not_own_account(work, user.id, message)
    _check_other_administrator_exists(user.id, session=work.session)
    user.is_admin = False


def check_account_erasable(work: UnitOfWork, user: UserView) -> None:
    """Check that an account may be erased.

    Raise ConflictError for the administrator's own account, for bots and for the last
    administrator.
    """
    message = "You cannot delete your own account. Ask another administrator."
    _check_not_own_account(work, user.id, message)
    if user.kind != HUMAN:
        raise ConflictError(
            f"This account belongs to {_MACHINE_ACCOUNT_ADVICE[user.kind]} instead."
        )
    _check_other_administrator_exists(user.id, session=work.session)


def _check_not_own_account(work: UnitOfWork, user_id: int, sentence: str) -> None:
    if user_id == work.actor.id:
        raise ConflictError(sentence)


def _check_is_human_account(user: User) -> None:
    if user.kind != HUMAN:
        raise ConflictError(
            "Bots have no password, and their accounts cannot be changed or deactivated."
        )


def list_administrator_addresses(*, session: Session) -> list[str]:
    """Return the email addresses of all active administrators."""
    found = select(User.email).where(User.is_admin, IS_ACTIVE_HUMAN).order_by(User.id)
    return list(session.scalars(found))


def _check_other_administrator_exists(user_id: int, *, session: Session) -> None:
    """Check that another active administrator remains.

    Concurrent calls are serialized. Raise ConflictError if this is the last active administrator.
    """
    administrators = session.scalars(
        select(User.id)
        .where(User.is_admin, IS_ACTIVE_HUMAN)
        .order_by(User.id)
        # KEY SHARE does not block inserts of rows that refer to the user, such as sign-ins.
        .with_for_update(key_share=True)
    ).all()
    if list(administrators) == [user_id]:
        message = "This is the last active administrator. Make another user an administrator first."
        raise ConflictError(message)
