"""Commands about contacts of people and channels of projects."""

from typing import Any

import click
from flask.cli import AppGroup

from domain.accounts.users import get_user
from domain.errors import NotFoundError
from domain.notifications.contacts import (
    ContactType,
    ContactView,
    Owner,
    get_contact,
    list_contacts,
)
from domain.projects.members import get_namespace
from web.commands.transaction import one_transaction
from web.extensions import db
from web.notifications import contacts as shared

contacts = AppGroup("contacts", help="Contacts: addresses at which people are paged.")
channels = AppGroup("channels", help="Channels: chat rooms and lists that projects page.")

_TYPE = click.option(
    "--type", "kind", type=click.Choice([each.value for each in ContactType]), required=True
)
_ADDRESS = click.option("--address", required=True, help="An e-mail address, or an Apprise URL.")
_LABEL = click.option("--label", default="", help="Name; by default the address.")


@contacts.command("create")
@click.argument("login")
@_TYPE
@_ADDRESS
@_LABEL
@one_transaction
def create_contact(*, login: str, kind: str, address: str, label: str) -> dict[str, Any]:
    """Create a confirmed contact."""
    return _shown(_create(_person(login), kind, address, label))


@contacts.command("list")
@click.argument("login")
@one_transaction
def list_of_person(*, login: str) -> dict[str, Any]:
    """List the contacts of a user."""
    found = list_contacts(_person(login), session=db.session())
    return {"contacts": [_shown(each) for each in found]}


@contacts.command("show")
@click.argument("login")
@click.argument("contact_id", type=int)
@one_transaction
def show_contact(*, login: str, contact_id: int) -> dict[str, Any]:
    """Show a contact of a user."""
    return _shown(get_contact(contact_id, _person(login), session=db.session()))


@contacts.command("delete")
@click.argument("login")
@click.argument("contact_id", type=int)
@one_transaction
def delete_contact(*, login: str, contact_id: int) -> dict[str, Any]:
    """Delete a contact with its waiting messages."""
    return _shown(shared.delete(contact_id, _person(login)))


@channels.command("create")
@click.argument("project")
@_TYPE
@_ADDRESS
@_LABEL
@one_transaction
def create_channel(*, project: str, kind: str, address: str, label: str) -> dict[str, Any]:
    """Create a channel, which escalation policies can page."""
    return _shown(_create(_project(project), kind, address, label))


@channels.command("list")
@click.argument("project")
@one_transaction
def list_of_project(*, project: str) -> dict[str, Any]:
    """List the channels of a project."""
    found = list_contacts(_project(project), session=db.session())
    return {"channels": [_shown(each) for each in found]}


@channels.command("show")
@click.argument("project")
@click.argument("channel_id", type=int)
@one_transaction
def show_channel(*, project: str, channel_id: int) -> dict[str, Any]:
    """Show a channel of a project."""
    return _shown(get_contact(channel_id, _project(project), session=db.session()))


@channels.command("delete")
@click.argument("project")
@click.argument("channel_id", type=int)
@one_transaction
def delete_channel(*, project: str, channel_id: int) -> dict[str, Any]:
    """Delete a channel with its waiting messages."""
    return _shown(shared.delete(channel_id, _project(project)))


def _create(owner: Owner, kind: str, address: str, label: str) -> ContactView:
    checked = shared.checked_address(kind, address)
    return shared.create(owner, checked, label, is_confirmed=True)


def _person(login: str) -> Owner:
    return Owner(user_id=get_user(login, session=db.session()).id)


def _project(path: str) -> Owner:
    project_id = get_namespace(path, session=db.session()).project_id
    if project_id is None:
        message = f"Project “{path}” not found."
        raise NotFoundError(message)
    return Owner(project_id=project_id)


def _shown(view: ContactView) -> dict[str, Any]:
    return view.as_json()
