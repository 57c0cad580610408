"""Actions that let users manage their own accounts.

The actions change the profile, email address, password, second factors and signed-in browsers.
"""

from domain.access.actions import action
from domain.access.actor import UnitOfWork
from domain.accounts.administration import get_account
from domain.accounts.email_addresses import cancel_address_change, request_address_change
from domain.accounts.factors import passkeys, recovery_codes, totp
from domain.accounts.factors.passkeys import CeremonyResponse, InvalidPasskeyError
from domain.accounts.factors.second_factors import delete_orphaned_recovery_codes, has_second_factor
from domain.accounts.passwords import PasswordRules, delete_initial_password_file
from domain.accounts.sign_in.sessions import close_other_sign_ins, close_user_sign_in
from domain.accounts.types import NameBody, PasswordBody, ProfileBody
from domain.accounts.users import HUMAN, change_password, change_profile, normalize_email
from domain.audit.events import EventKind
from domain.core.database.locks import commit_to_release_locks
from domain.core.errors import ForbiddenError
from domain.core.keyring import Keyring
from domain.oauth.clients.user_agents import describe_device
from domain.oauth.consent.authorized_applications import (
    list_authorized_applications,
    revoke_all_applications,
)
from domain.oauth.personal_tokens.token_lists import TokenFilter, count_tokens
from domain.oauth.personal_tokens.tokens import revoke_own_tokens


def find_granted_access(work: UnitOfWork, user_id: int) -> dict[str, bool]:
    """Return the kinds of access that a user has granted.

    The result states whether the user has authorized applications, and whether the user has active
    personal access tokens.
    """
    own = TokenFilter(owner_id=user_id, user_id=user_id, is_active=True)
    return {
        "has_applications": bool(
            list_authorized_applications(user_id, session=work.session, now=work.now)
        ),
        "has_tokens": count_tokens(own, session=work.session, now=work.now) > 0,
    }


def revoke_access(
    work: UnitOfWork, user_id: int, *, applications: bool, tokens: bool
) -> dict[str, int]:
    """Revoke the access of applications or tokens, and return the counts for the audit log.

    An unconfirmed new email address is discarded, because it may have been requested by someone who
    knew the previous password.
    """
    ended = {}
    cancel_address_change(user_id, session=work.session)
    if applications:
        ended["applications_ended"] = revoke_all_applications(
            user_id, session=work.session, now=work.now
        )
    if tokens:
        ended["tokens_revoked"] = revoke_own_tokens(user_id, session=work.session, now=work.now)
    return ended


AUTHENTICATOR_APP = "authenticator app"
#: Recovery codes in plain text.
RecoveryCodes = tuple[str, ...]


@action("users.rename_current")
def rename_own_account(work: UnitOfWork, new: NameBody) -> None:
    """Change the caller's name."""
    if get_account(_get_own_id(work), session=work.session).kind != HUMAN:
        raise ForbiddenError(
            "Bots cannot be renamed. A bot has the name of its access token or application."
        )
    change_profile(_get_own_id(work), new.name, session=work.session)


@action("own_account.change")
def change_own_profile(work: UnitOfWork, change: ProfileBody) -> bool:
    """Change the caller's name, time zone and email address.

    Return whether a new email address has to be confirmed.
    """
    user, session = get_account(_get_own_id(work), session=work.session), work.session
    has_new_address = normalize_email(change.email) != user.email
    change_profile(user.id, change.name, time_zone=change.time_zone, session=session)
    if has_new_address:
        request_address_change(work, user.id, change.email)
        _record_own_event(work, EventKind.EMAIL_CHANGE_REQUESTED, user.username)
    return has_new_address


@action("own_account.change")
def change_own_password(work: UnitOfWork, sign_in_id: int, new: PasswordBody) -> None:
    """Change the password, and sign out all other browsers."""
    rules = work.policy(PasswordRules)
    user = get_account(_get_own_id(work), session=work.session)
    change_password(user.id, new.new_password, session=work.session, now=work.now, rules=rules)
    close_other_sign_ins(user.id, but=sign_in_id, session=work.session)
    delete_initial_password_file(user.username, work.settings.instance_path)
    ended = revoke_access(
        work, user.id, applications=new.end_applications, tokens=new.revoke_tokens
    )
    _record_own_event(work, EventKind.PASSWORD_CHANGED, **ended)


@action("own_account.change")
def end_own_sign_in(work: UnitOfWork, sign_in_id: int) -> str:
    """Sign out one browser, and return its description."""
    closed = close_user_sign_in(_get_own_id(work), sign_in_id, session=work.session)
    words = describe_device(closed.user_agent)
    details = {"browser": words, "browser_address": closed.address}
    _record_own_event(work, EventKind.SIGNED_OUT, "another browser", **details)
    return words


@action("own_account.change")
def end_other_sign_ins(work: UnitOfWork, sign_in_id: int) -> None:
    """Sign out all other browsers."""
    closed = close_other_sign_ins(_get_own_id(work), but=sign_in_id, session=work.session)
    if closed:
        _record_own_event(work, EventKind.SIGNED_OUT, "another browser", browsers=closed)


@action("own_account.change")
def add_own_authenticator_app(
    work: UnitOfWork, sign_in_id: int, seed: str, typed: str
) -> RecoveryCodes:
    """Set up an authenticator app.

    Return recovery codes if it is the first second factor.
    """
    had_any = has_second_factor(_get_own_id(work), session=work.session)
    code = totp.normalize_totp_code(typed) or ""
    totp.set_up_authenticator_app(work, _get_own_id(work), seed, code)
    return _record_added_factor(work, AUTHENTICATOR_APP, sign_in_id, is_first=not had_any)


@action("own_account.change")
def remove_own_authenticator_app(work: UnitOfWork) -> bool:
    """Remove the authenticator app.

    Return whether the user had an app.
    """
    is_removed = totp.remove_authenticator_app(_get_own_id(work), session=work.session)
    if is_removed:
        _record_removed_factor(work, AUTHENTICATOR_APP)
    return is_removed


@action("own_account.change")
def add_passkey(
    work: UnitOfWork, sign_in_id: int, reply: CeremonyResponse, name: str
) -> RecoveryCodes:
    """Store a new passkey.

    Return recovery codes if it is the first second factor.
    """
    had_any = has_second_factor(_get_own_id(work), session=work.session)
    session, keyring = work.session, work.policy(Keyring)
    try:
        passkeys.add_passkey(
            _get_own_id(work), reply, name, session=session, keyring=keyring, now=work.now
        )
    except InvalidPasskeyError:
        commit_to_release_locks(session)  # Keep the challenge marked as used.
        raise
    return _record_added_factor(work, f"passkey {name}", sign_in_id, is_first=not had_any)


@action("own_account.change")
def rename_passkey(work: UnitOfWork, passkey_id: int, name: str) -> None:
    """Rename a passkey."""
    passkeys.rename_passkey(passkey_id, name, owner_id=_get_own_id(work), session=work.session)


@action("own_account.change")
def remove_passkey(work: UnitOfWork, passkey_id: int) -> None:
    """Remove one of the caller's passkeys."""
    name = passkeys.get_passkey(passkey_id, owner_id=_get_own_id(work), session=work.session).name
    passkeys.remove_passkey(passkey_id, owner_id=_get_own_id(work), session=work.session)
    _record_removed_factor(work, f"passkey {name}")


@action("own_account.change")
def renew_recovery_codes(work: UnitOfWork) -> RecoveryCodes:
    """Replace the caller's recovery codes, and return the new codes."""
    codes = recovery_codes.replace_recovery_codes(
        _get_own_id(work), session=work.session, keyring=work.policy(Keyring), now=work.now
    )
    _record_own_event(work, EventKind.RECOVERY_CODES_MADE)
    return codes


def _record_added_factor(
    work: UnitOfWork, factor: str, sign_in_id: int, *, is_first: bool
) -> RecoveryCodes:
    """Record a new second factor in the audit log.

    If it is the first second factor, sign out all other browsers and return recovery codes.
    """
    _record_own_event(work, EventKind.SECOND_FACTOR_ADDED, factor)
    if not is_first:
        return ()
    close_other_sign_ins(_get_own_id(work), but=sign_in_id, session=work.session)
    return renew_recovery_codes(work)


def _record_removed_factor(work: UnitOfWork, factor: str) -> None:
    delete_orphaned_recovery_codes(_get_own_id(work), session=work.session)
    _record_own_event(work, EventKind.SECOND_FACTOR_REMOVED, factor)


def _get_own_id(work: UnitOfWork) -> int:
    return work.actor.id or 0


def _record_own_event(
    work: UnitOfWork, kind: EventKind, subject: str = "", /, **details: object
) -> None:
    work.record_audit_event(kind, subject=subject, user_id=_get_own_id(work), details=details)
