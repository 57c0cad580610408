"""Actions that let administrators manage accounts, and let users view each other."""

from dataclasses import replace

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.accounts import account_lists, administration
from domain.accounts.administration import add_account, change_account, generate_password
from domain.accounts.email_addresses import confirm_current_address, send_confirmation_link
from domain.accounts.factors.second_factors import delete_second_factors as forget_factors
from domain.accounts.lifecycle.own_account import revoke_access
from domain.accounts.passwords import PasswordRules, delete_initial_password_file
from domain.accounts.personal_data.erasure import count_applications, erase_person
from domain.accounts.personal_data.inventory import export_personal_data
from domain.accounts.types import (
    Account,
    AccountBody,
    AccountChangeBody,
    AccountDetails,
    ErasureBody,
    ErasureResult,
    FactorRemovalResult,
    NewAccount,
    PasswordResetBody,
    PersonalData,
    ResetAccount,
    User,
    UserQuery,
)
from domain.accounts.users import NewUser, UserView, get_user
from domain.audit.events import EventKind
from domain.audit.seals import get_or_create_audit_key
from domain.core.database.locks import commit_to_release_locks
from domain.core.errors import ForbiddenError, InvalidError, NotFoundError, QueryError
from domain.core.keyring import Keyring
from domain.core.types.pagination import ListPage
from domain.oauth.clients.applications import build_owner_condition
from domain.oauth.clients.service_accounts import revoke_service_account_tokens
from domain.projects.transfers import rename_personal_namespace
from domain.projects.user_profiles import is_user_visible
from domain.projects.views import Viewer


@read_action("users.index")
def list_users(work: UnitOfWork, query: UserQuery) -> ListPage[Account] | ListPage[User]:
    """List users with an active account, or all accounts for administrators."""
    if query.is_for_administrators and not work.actor.is_admin:
        message = "Only administrators can use `admins`, `two_factor` and `without_projects`."
        raise ForbiddenError(message)
    if query.active and query.blocked:
        raise QueryError("`active` and `blocked` are mutually exclusive.", field="blocked")
    listed = account_lists.list_accounts if work.actor.is_admin else account_lists.list_public_users
    return listed(
        query, query.requested_range, session=work.session, base_url=work.settings.base_url
    )


@read_action("users.show")
def show_user(work: UnitOfWork, user_id: int) -> Account | User:
    """Show a user."""
    if work.actor.is_admin:
        return show_account(work, user_id)
    viewer = Viewer(user_id=work.actor.id, today=work.now.date())
    session, base_url = work.session, work.settings.base_url
    found = account_lists.find_public_user(user_id, session=session, base_url=base_url)
    if found is None and is_user_visible(user_id, viewer, session=session):
        found = account_lists.get_public_user(user_id, session=session, base_url=base_url)
    if found is None:
        raise NotFoundError("User not found.")
    return found


def show_account(work: UnitOfWork, user_id: int) -> AccountDetails:
    """Return an account as administrators see it.

    Raise NotFoundError if the account does not exist or was erased.
    """
    return account_lists.get_account_details(
        user_id, session=work.session, now=work.now, base_url=work.settings.base_url
    )


@action("users.create")
def create_user(work: UnitOfWork, new: AccountBody) -> NewAccount | Account:
    """Create a user with a given or generated password.

    No other response contains a generated password.
    """
    if (new.password is None) != new.force_random_password:
        message = "Send either `password` or `force_random_password=true`."
        raise InvalidError(message, field="password")
    password, rules = new.password, work.policy(PasswordRules)
    if password is None:
        password = generate_password(new.username)
        rules = replace(rules, minimum=len(password))
    commit_to_release_locks(work.session)  # Hashing a password takes time.
    wanted = NewUser(
        username=new.username,
        email=new.email,
        name=new.name,
        password=password,
        is_admin=new.admin,
        # An operator may create an account for personal use, so the password need not be changed.
        must_change_password=not work.actor.is_trusted,
        time_zone=new.time_zone,
        is_email_confirmed=new.skip_confirmation,
    )
    user = add_account(work, wanted, rules)
    send_confirmation_link(work, user.id)
    made = show_account(work, user.id)
    if new.password is not None:
        return made
    return NewAccount(**vars(made), generated_password=password)


@action("users.change")
def change_user(work: UnitOfWork, user_id: int, change: AccountChangeBody) -> Account:
    """Change the names, the email address, the time zone or the role of a user."""
    before = administration.get_account(user_id, session=work.session).username
    changed = change_account(work, user_id, change)
    after = show_account(work, user_id)
    if "username" in changed:
        rename_personal_namespace(work, user_id, after.username)
    if changed:
        more: dict[str, object] = {"before": before} if "username" in changed else {}
        more |= {"administrator": after.is_admin} if "is_admin" in changed else {}
        _record_user_event(work, EventKind.USER_CHANGED, after, changed=", ".join(changed), **more)
    return after


@action("users.change")
def confirm_user_email(work: UnitOfWork, user_id: int) -> bool:
    """Confirm the email address of a user as an administrator.

    Return whether the address was unconfirmed.
    """
    user = administration.get_account(user_id, session=work.session)
    is_new = confirm_current_address(work, user_id)
    if is_new:
        _record_user_event(work, EventKind.EMAIL_CONFIRMED, user)
    return is_new


@action("users.block", command="lock")
def lock_user(work: UnitOfWork, user_id: int) -> Account:
    """Lock an account and sign its owner out everywhere."""
    was_active = administration.lock_account(work, user_id)
    user = show_account(work, user_id)
    if was_active:
        revoke_service_account_tokens(work, build_owner_condition(user_id))
        _record_user_event(work, EventKind.USER_LOCKED, user)
    return user


@action("users.unblock", command="unlock")
def unlock_user(work: UnitOfWork, user_id: int) -> Account:
    """Unlock an account, and reset its count of failed sign-in attempts."""
    administration.unlock_account(work, user_id)
    user = show_account(work, user_id)
    _record_user_event(work, EventKind.USER_UNLOCKED, user)
    return user


@action("users.deactivate")
def deactivate_user(work: UnitOfWork, user_id: int) -> Account:
    """Sign the owner of an account out everywhere, and deactivate it until the next sign-in."""
    was_active = administration.deactivate_account(work, user_id)
    user = show_account(work, user_id)
    if was_active:
        _record_user_event(work, EventKind.USER_DEACTIVATED, user)
    return user


@action("users.activate")
def activate_user(work: UnitOfWork, user_id: int) -> Account:
    """Activate an account that was deactivated."""
    was_deactivated = administration.activate_account(work, user_id)
    user = show_account(work, user_id)
    if was_deactivated:
        _record_user_event(work, EventKind.USER_ACTIVATED, user)
    return user


@action("users.change", command="reset-password")
def reset_password(work: UnitOfWork, user_id: int, reset: PasswordResetBody) -> ResetAccount:
    """Reset the password of a user to a random password, to be changed at the next sign-in.

    All browsers are signed out. Applications lose their access unless `keep_applications` is true.
    """
    password = administration.replace_password(work, user_id)
    ended = revoke_access(
        work, user_id, applications=not reset.keep_applications, tokens=reset.revoke_tokens
    )
    user = show_account(work, user_id)
    delete_initial_password_file(user.username, work.settings.instance_path)
    _record_user_event(work, EventKind.PASSWORD_RESET, user, **ended)
    return ResetAccount(**vars(user), password=password)


@action("users.change", command="remove-second-factors")
def remove_second_factors(work: UnitOfWork, user_id: int) -> FactorRemovalResult:
    """Remove all second factors of a user: authenticator app, passkeys and recovery codes."""
    user = administration.get_account(user_id, session=work.session)
    had_any = forget_factors(user_id, session=work.session)
    if had_any:
        work.record_audit_event(
            EventKind.SECOND_FACTOR_REMOVED, user_id=user_id, subject="all of them"
        )
    return FactorRemovalResult(username=user.username, removed=had_any)


@action("users.export")
def export_user(work: UnitOfWork, user_id: int) -> PersonalData:
    """Export the personal data of the caller, or of any user for administrators."""
    if user_id != work.actor.id and not work.actor.is_admin:
        raise NotFoundError("User not found.")
    user = administration.get_account(user_id, session=work.session)
    _record_user_event(work, EventKind.USER_EXPORTED, user)
    keyring = work.policy(Keyring)
    held = export_personal_data(user, session=work.session, keyring=keyring, now=work.now)
    return PersonalData.model_validate(held)


@action("users.delete")
def delete_user(work: UnitOfWork, user_id: int, erasure: ErasureBody) -> ErasureResult:
    """Delete a user and pseudonymize data that other users need.

    Raise InvalidError if the user has applications and the request does not specify what to do with
    them.
    """
    session, heir = work.session, erasure.applications_to
    user = administration.get_account(user_id, session=session)
    next_owner = get_user(heir, session=session) if heir else None
    is_settled = next_owner is not None or erasure.delete_applications
    if not is_settled and count_applications(user, session=session):
        message = "Choose whether to transfer or delete the applications of the user."
        raise InvalidError(message, field="heir")
    key = get_or_create_audit_key(session=session, keyring=work.policy(Keyring), now=work.now)
    delete_initial_password_file(user.username, work.settings.instance_path)
    done = erase_person(work, user, heir=next_owner, audit_key=key)
    details = {
        "applications_handed_on": done.applications_handed_on,
        "applications_deleted": done.applications_deleted,
        "projects_deleted": done.projects_deleted,
    }
    work.record_audit_event(EventKind.USER_ERASED, subject=done.pseudonym, details=details)
    return done


def _record_user_event(
    work: UnitOfWork, kind: EventKind, user: UserView | Account, **details: object
) -> None:
    work.record_audit_event(kind, user_id=user.id, subject=user.username, details=details)
