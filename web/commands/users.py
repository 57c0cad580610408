"""Commands for user accounts, most of which are generated from actions."""

import sys
from typing import Any

import click
from flask.cli import AppGroup

from domain.accounts.account_lists import ACCOUNT_GROUPS, AccountFilter, fetch_account_page
from domain.accounts.email_addresses import confirm_all_addresses
from domain.accounts.identity_providers.identities import disconnect_user
from domain.accounts.lifecycle import actions, sign_up
from domain.accounts.types import AccountBody
from domain.accounts.users import get_user
from domain.core.database.pagination import KeysetRange
from domain.core.errors import InvalidError
from domain.core.types.validation import validate_body
from web.commands.action_commands import build_command
from web.commands.execution import run_in_transaction
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work
from web.services import get_settings

users = AppGroup("users", help="Manage user accounts.")
#: Maximum page size of a list.
_MAX_LISTED = 1_000
#: Fields that are omitted because they would make tables too wide.
_OMITTED_FIELDS = {"avatar_url", "public_email", "web_url"}

for each in (
    actions.activate_user,
    actions.change_user,
    actions.deactivate_user,
    actions.delete_user,
    actions.export_user,
    actions.lock_user,
    actions.remove_second_factors,
    actions.reset_password,
    actions.show_user,
    actions.unlock_user,
    disconnect_user,
    sign_up.approve_user,
    sign_up.reject_user,
):
    users.add_command(build_command(each))


@users.command("create")
@click.argument("username", metavar="NAME")
@click.option("--email", required=True, help="Email address.")
@click.option(
    "--display-name", "name", default="", help="Display name. The default is the username."
)
@click.option("--admin", is_flag=True, help="Make the user an administrator.")
@click.option(
    "--verified", "skip_confirmation", is_flag=True, help="Mark the email address as verified."
)
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@run_in_transaction
def create_user_command(*, password_stdin: bool, **given: Any) -> dict[str, Any]:
    """Create a user. Without --password-stdin, a random password is printed."""
    password = sys.stdin.readline().rstrip("\r\n") if password_stdin else None
    how = {"force_random_password": True} if password is None else {"password": password}
    made = actions.create_user(get_unit_of_work(), validate_body(AccountBody, {**given, **how}))
    shown = made.model_dump(mode="json", exclude={"generated_password"})
    generated = getattr(made, "generated_password", None)
    return shown if generated is None else {**shown, "password": generated}


@users.command("verify")
@click.argument("name", required=False)
@click.option("--all", "all_users", is_flag=True, help="Verify the addresses of all users.")
@run_in_transaction
def verify_command(*, name: str | None, all_users: bool) -> dict[str, Any]:
    """Mark the email address of the user NAME as verified, or the addresses of all users.

    Applications then receive the address as verified.
    """
    if (name is None) != all_users:
        raise InvalidError("Use either `NAME` or `--all`.")
    if name is None:
        return {"verified": confirm_all_addresses(get_unit_of_work())}
    user = get_user(name, session=db.session())
    was_new = actions.confirm_user_email(get_unit_of_work(), user.id)
    return {"username": user.username, "email": user.email, "verified": int(was_new)}


@users.command("list")
@click.option(
    "--group",
    type=click.Choice(tuple(ACCOUNT_GROUPS)),
    default="people",
    show_default=True,
    help="Accounts to list.",
)
@click.option("--search", default="", help="Words in usernames, names and email addresses.")
@click.option(
    "--before",
    type=click.IntRange(1),
    help="List only accounts with smaller IDs. Use the value of next in the previous output.",
)
@run_in_transaction
def list_users_command(*, group: str, search: str, before: int | None) -> dict[str, Any]:
    """List accounts, newest first."""
    wanted, part = (
        AccountFilter(group=group, search=search),
        KeysetRange(size=_MAX_LISTED, before=before),
    )
    page = fetch_account_page(wanted, part, session=db.session(), base_url=get_settings().base_url)
    listed = [each.model_dump(mode="json", exclude=_OMITTED_FIELDS) for each in page.items]
    return {"users": listed, "next": page.next_before}
