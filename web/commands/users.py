"""Commands for user accounts."""

import sys
from dataclasses import asdict
from typing import Any

import click
from flask.cli import AppGroup

from domain.accounts.administration import (
    AccountChange,
    change_account,
    create_invited_user,
    generate_password,
    get_account,
    lock,
    reset_password,
    unlock,
)
from domain.accounts.directory import (
    GROUPS,
    AccountFilter,
    look_up_account,
    page_of_accounts,
)
from domain.accounts.email_addresses import vouch, vouch_for_all
from domain.accounts.factors.second_factors import remove_second_factors
from domain.accounts.users import NewUser, UserView, get_user
from domain.audit.events import Event, EventKind
from domain.database.paging import Slice
from domain.errors import InvalidError
from web.admin.personal_data import erase, exported
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.audit_events import record_event
from web.server.bootstrap import forget_first_password
from web.services import letterhead, now, services, settings
from web.settings.password_rules import hash_cost, password_rules
from web.signing_in.account_access import end_access

users = AppGroup("users", help="User accounts.")
#: The largest page of a list.
_MOST = 1_000


@users.command("create")
@click.argument("name")
@click.option("--email", required=True, help="E-mail address.")
@click.option("--display-name", default="", help="Display name; defaults to the user name.")
@click.option("--admin", is_flag=True, help="Make the user an administrator.")
@click.option("--verified", is_flag=True, help="Vouch for the e-mail address.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@one_transaction
def create_user_command(
    *, name: str, email: str, display_name: str, admin: bool, verified: bool, password_stdin: bool
) -> dict[str, Any]:
    """Create a user. Without --password-stdin, a random password is printed."""
    given = sys.stdin.readline().rstrip("\r\n") if password_stdin else None
    password = given if given is not None else generate_password(name)
    new = NewUser(
        username=name,
        email=email,
        name=display_name,
        password=password,
        is_admin=admin,
        is_email_confirmed=verified,
    )
    user = create_invited_user(
        new,
        letterhead(),
        session=db.session(),
        now=now(),
        rules=password_rules(settings()),
    )
    created = {"administrator": user.is_admin}
    record_event(
        Event(kind=EventKind.USER_CREATED, user_id=user.id, subject=user.username, details=created)
    )
    answer = {"id": user.id, "username": user.username, "email": user.email}
    return answer if given is not None else {**answer, "password": password}


@users.command("remove-second-factors")
@click.argument("name")
@one_transaction
def remove_second_factors_command(*, name: str) -> dict[str, Any]:
    """Remove the second factors of the user NAME: app, passkeys and recovery codes."""
    user = get_user(name, session=db.session())
    had_any = remove_second_factors(user.id, session=db.session())
    if had_any:
        record_event(
            Event(kind=EventKind.SECOND_FACTOR_REMOVED, user_id=user.id, subject="all of them")
        )
    return {"username": user.username, "removed": had_any}


@users.command("show")
@click.argument("name")
@one_transaction
def show_command(*, name: str) -> dict[str, Any]:
    """Show the user NAME."""
    user = get_user(name, session=db.session())
    found = look_up_account(user.id, session=db.session(), now=now())
    return {**found.as_json()}


@users.command("change")
@click.argument("name")
@click.option("--username", help="New user name.")
@click.option("--display-name", help="New display name.")
@click.option("--email", help="New e-mail address.")
@click.option("--verified", is_flag=True, help="Vouch for the e-mail address.")
@click.option("--time-zone", help="Time zone of their pages and messages, such as Europe/Berlin.")
@one_transaction
def change_command(
    *,
    name: str,
    username: str | None,
    display_name: str | None,
    email: str | None,
    verified: bool,
    time_zone: str | None,
) -> dict[str, Any]:
    """Change the user NAME: names, e-mail address and time zone."""
    session = db.session()
    wanted = AccountChange(
        username=username,
        name=display_name,
        email=email,
        time_zone=time_zone,
        is_email_confirmed=verified,
    )
    user = get_user(name, session=session)
    changed = change_account(user.id, wanted, letterhead(), by=None, session=session, now=now())
    after = get_account(user.id, session=session)
    details = {"before": user.username} if "username" in changed else {}
    if changed:
        details |= {"changed": ", ".join(changed)}
        _recorded(EventKind.USER_CHANGED, after, **details)
    return {"id": after.id, "username": after.username, "changed": [*changed]}


@users.command("verify")
@click.argument("name", required=False)
@click.option("--all", "all_users", is_flag=True, help="Vouch for the addresses of all users.")
@one_transaction
def verify_command(*, name: str | None, all_users: bool) -> dict[str, Any]:
    """Vouch for the e-mail address of the user NAME, or of all users with --all.

    Applications are told that it is verified.
    """
    if (name is None) != all_users:
        message = "Give the name of a user, or --all."
        raise InvalidError(message)
    if name is None:
        done = vouch_for_all(session=db.session(), now=now())
        if done:
            record_event(Event(kind=EventKind.EMAIL_CONFIRMED, details={"accounts": done}))
        return {"verified": done}
    user = get_user(name, session=db.session())
    was_new = vouch(user.id, session=db.session(), now=now())
    if was_new:
        record_event(Event(kind=EventKind.EMAIL_CONFIRMED, user_id=user.id, subject=user.username))
    return {"username": user.username, "email": user.email, "verified": int(was_new)}


@users.command("lock")
@click.argument("name")
@one_transaction
def lock_command(*, name: str) -> dict[str, Any]:
    """Lock the user NAME: signed out everywhere, passwords and tokens stop working."""
    user = get_user(name, session=db.session())
    locked = lock(user.id, by=None, session=db.session())
    return _recorded(EventKind.USER_LOCKED, locked)


@users.command("unlock")
@click.argument("name")
@one_transaction
def unlock_command(*, name: str) -> dict[str, Any]:
    """Unlock the user NAME, also after too many failed sign-ins."""
    user = get_user(name, session=db.session())
    unlocked = unlock(user.id, session=db.session(), keyring=services().keyring)
    return _recorded(EventKind.USER_UNLOCKED, unlocked)


@users.command("reset-password")
@click.argument("name")
@click.option("--keep-applications", is_flag=True, help="Keep applications authorized.")
@click.option("--revoke-tokens", is_flag=True, help="Also revoke personal access tokens.")
@one_transaction
def reset_password_command(
    *, name: str, keep_applications: bool, revoke_tokens: bool
) -> dict[str, Any]:
    """Reset the password of the user NAME and print the new one, to be changed at sign-in.

    All browsers and applications are signed out.
    """
    session, keyring = db.session(), services().keyring
    user = get_user(name, session=session)
    issued = reset_password(
        user.id,
        by=None,
        cost=hash_cost(settings()),
        session=session,
        keyring=keyring,
        now=now(),
    )
    forget_first_password(user.username)
    ended = end_access(user.id, applications=not keep_applications, tokens=revoke_tokens)
    return {
        **_recorded(EventKind.PASSWORD_RESET, issued.user, **ended),
        "password": issued.password,
    }


@users.command("export")
@click.argument("name")
@one_transaction
def export_command(*, name: str) -> dict[str, Any]:
    """Print all personal data of the user NAME, without secrets."""
    return exported(get_user(name, session=db.session()))


@users.command("delete")
@click.argument("name")
@click.option("--applications-to", default="", help="New owner of their applications.")
@click.option("--delete-applications", is_flag=True, help="Delete their applications as well.")
@one_transaction
def delete_command(*, name: str, applications_to: str, delete_applications: bool) -> dict[str, Any]:
    """Delete the user NAME. Events and comments are kept under a pseudonym."""
    session = db.session()
    heir = get_user(applications_to, session=session) if applications_to else None
    user = get_user(name, session=session)
    done = erase(user, by=None, heir=heir, may_delete_applications=delete_applications)
    return asdict(done)


@users.command("list")
@click.option("--group", type=click.Choice(tuple(GROUPS)), default="people", show_default=True)
@click.option("--search", default="", help="Search user names, names and e-mail addresses.")
@click.option("--before", type=click.IntRange(1), help="Start below this id: the value of `next`.")
@one_transaction
def list_users_command(*, group: str, search: str, before: int | None) -> dict[str, Any]:
    """List accounts, newest first."""
    wanted, part = AccountFilter(group=group, search=search), Slice(size=_MOST, before=before)
    page = page_of_accounts(wanted, part, session=db.session())
    return {"users": [each.as_json() for each in page.items], "next": page.next_before}


def _recorded(kind: EventKind, user: UserView, **details: object) -> dict[str, Any]:
    record_event(Event(kind=kind, user_id=user.id, subject=user.username, details=details or None))
    return {"id": user.id, "username": user.username, "state": user.state}
