"""Actions of users on their own account: profile, address, password, factors and browsers."""

from domain.access.actions import action
from domain.access.actor import Work
from domain.accounts.administration import get_account
from domain.accounts.email_addresses import forget_new_address, request_change
from domain.accounts.factors import passkeys, recovery_codes, totp
from domain.accounts.factors.passkeys import CeremonyResponse, PasskeyRefusedError
from domain.accounts.factors.second_factors import forget_useless_recovery_codes, has_second_factor
from domain.accounts.passwords import PasswordRules, forget_first_password
from domain.accounts.signing_in.sessions import close_other_sign_ins, close_sign_in_of
from domain.accounts.types import NameBody, PasswordBody, ProfileBody
from domain.accounts.users import HUMAN, change_password, change_profile, checked_email
from domain.audit.events import EventKind
from domain.core.database.locks import release_locks
from domain.core.errors import ForbiddenError
from domain.core.keyring import Keyring
from domain.oauth.clients.user_agents import device_in_words
from domain.oauth.consent.authorized_applications import list_authorized, revoke_everything
from domain.oauth.personal_tokens.lists import TokenFilter, count_tokens
from domain.oauth.personal_tokens.tokens import revoke_own_tokens


def granted_access(work: Work, user_id: int) -> dict[str, bool]:
    """Return which kinds of access a user has granted, for the page that changes the password."""
    own = TokenFilter(owner_id=user_id, user_id=user_id, is_active=True)
    return {
        "has_applications": bool(list_authorized(user_id, session=work.session, now=work.now)),
        "has_tokens": count_tokens(own, session=work.session, now=work.now) > 0,
    }


def end_access(work: Work, user_id: int, *, applications: bool, tokens: bool) -> dict[str, int]:
    """Revoke the chosen kinds of access, and return their numbers for the audit log.

    An unconfirmed new email address is discarded, because it may have been requested by someone who
    knew the former password.
    """
    ended = {}
    forget_new_address(user_id, session=work.session)
    if applications:
        ended["applications_ended"] = revoke_everything(user_id, session=work.session, now=work.now)
    if tokens:
        ended["tokens_revoked"] = revoke_own_tokens(user_id, session=work.session, now=work.now)
    return ended


APP = "authenticator app"
#: Recovery codes in plain text.
Codes = tuple[str, ...]


@action("users.rename_current")
def rename(work: Work, new: NameBody) -> None:
    """Change the caller's name."""
    if get_account(_me(work), session=work.session).kind != HUMAN:
        raise ForbiddenError("The name of a bot is the name of its access token or application.")
    change_profile(_me(work), new.name, session=work.session)


@action("own_account.change")
def change_own_profile(work: Work, change: ProfileBody) -> bool:
    """Change the caller's name, time zone and email address.

    Return whether a new email address has to be confirmed.
    """
    user, session = get_account(_me(work), session=work.session), work.session
    has_new_address = checked_email(change.email) != user.email
    change_profile(user.id, change.name, time_zone=change.time_zone, session=session)
    if has_new_address:
        request_change(work, user.id, change.email)
        _record(work, EventKind.EMAIL_CHANGE_REQUESTED, user.username)
    return has_new_address


@action("own_account.change")
def change_own_password(work: Work, sign_in_id: int, new: PasswordBody) -> None:
    """Change the password, and sign out all other browsers."""
    rules = work.policy(PasswordRules)
    user = get_account(_me(work), session=work.session)
    change_password(user.id, new.new_password, session=work.session, now=work.now, rules=rules)
    close_other_sign_ins(user.id, but=sign_in_id, session=work.session)
    forget_first_password(user.username, work.settings.instance_path)
    ended = end_access(work, user.id, applications=new.end_applications, tokens=new.revoke_tokens)
    _record(work, EventKind.PASSWORD_CHANGED, **ended)


@action("own_account.change")
def end_sign_in(work: Work, sign_in_id: int) -> str:
    """Sign out one browser, and return its description."""
    closed = close_sign_in_of(_me(work), sign_in_id, session=work.session)
    words = device_in_words(closed.user_agent)
    details = {"browser": words, "browser_address": closed.address}
    _record(work, EventKind.SIGNED_OUT, "another browser", **details)
    return words


@action("own_account.change")
def end_other_sign_ins(work: Work, sign_in_id: int) -> None:
    """Sign out all other browsers."""
    closed = close_other_sign_ins(_me(work), but=sign_in_id, session=work.session)
    if closed:
        _record(work, EventKind.SIGNED_OUT, "another browser", browsers=closed)


@action("own_account.change")
def add_app(work: Work, sign_in_id: int, seed: str, typed: str) -> Codes:
    """Set up an authenticator app.

    Return recovery codes if it is the first second factor.
    """
    had_any = has_second_factor(_me(work), session=work.session)
    totp.set_up_app(
        _me(work),
        seed,
        totp.read_code(typed) or "",
        session=work.session,
        keyring=work.policy(Keyring),
        now=work.now,
    )
    return _added(work, APP, sign_in_id, is_first=not had_any)


@action("own_account.change")
def remove_app(work: Work) -> bool:
    """Remove the authenticator app.

    Return whether there was one.
    """
    is_removed = totp.remove_app(_me(work), session=work.session)
    if is_removed:
        _removed(work, APP)
    return is_removed


@action("own_account.change")
def add_passkey(work: Work, sign_in_id: int, reply: CeremonyResponse, name: str) -> Codes:
    """Store a new passkey.

    Return recovery codes if it is the first second factor.
    """
    had_any = has_second_factor(_me(work), session=work.session)
    session, keyring = work.session, work.policy(Keyring)
    try:
        passkeys.add_passkey(_me(work), reply, name, session=session, keyring=keyring, now=work.now)
    except PasskeyRefusedError:
        release_locks(session)  # Keep the challenge marked as used.
        raise
    return _added(work, f"passkey {name}", sign_in_id, is_first=not had_any)


@action("own_account.change")
def rename_passkey(work: Work, passkey_id: int, name: str) -> None:
    """Rename a passkey."""
    passkeys.rename_passkey(passkey_id, name, owner_id=_me(work), session=work.session)


@action("own_account.change")
def remove_passkey(work: Work, passkey_id: int) -> None:
    """Remove a passkey."""
    name = passkeys.get_passkey(passkey_id, owner_id=_me(work), session=work.session).name
    passkeys.remove_passkey(passkey_id, owner_id=_me(work), session=work.session)
    _removed(work, f"passkey {name}")


@action("own_account.change")
def renew_recovery_codes(work: Work) -> Codes:
    """Replace the recovery codes."""
    codes = recovery_codes.renew_codes(
        _me(work), session=work.session, keyring=work.policy(Keyring), now=work.now
    )
    _record(work, EventKind.RECOVERY_CODES_MADE)
    return codes


def _added(work: Work, factor: str, sign_in_id: int, *, is_first: bool) -> Codes:
    """Record a second factor in the audit log, and return recovery codes with the first one.

    The first one also signs out browsers that used only the password.
    """
    _record(work, EventKind.SECOND_FACTOR_ADDED, factor)
    if not is_first:
        return ()
    close_other_sign_ins(_me(work), but=sign_in_id, session=work.session)
    return renew_recovery_codes(work)


def _removed(work: Work, factor: str) -> None:
    forget_useless_recovery_codes(_me(work), session=work.session)
    _record(work, EventKind.SECOND_FACTOR_REMOVED, factor)


def _me(work: Work) -> int:
    return work.actor.id or 0


def _record(work: Work, kind: EventKind, subject: str = "", /, **details: object) -> None:
    work.record(kind, subject=subject, user_id=_me(work), details=details)
