"""Commands about contacts of people."""

from flask.cli import AppGroup

from domain.contacts import actions
from web.commands.generated import command_of

contacts = AppGroup("contacts", help="Contacts: addresses at which people are paged.")
for each in (
    actions.create_contact,
    actions.list_contacts,
    actions.show_contact,
    actions.send_contact_test,
    actions.delete_contact,
):
    contacts.add_command(command_of(each, is_for_user=True))
