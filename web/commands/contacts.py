"""Commands for users' contacts and notification rules."""

from flask.cli import AppGroup

from domain.access.actions import list_actions
from domain.paging.contacts import actions, rule_actions
from web.commands.action_commands import build_command

contacts = AppGroup("contacts", help="Manage the contacts at which users are paged.")
for act in (
    actions.create_contact,
    actions.list_contacts,
    actions.show_contact,
    actions.change_contact,
    actions.send_contact_test,
    actions.delete_contact,
):
    contacts.add_command(build_command(act, is_for_user=True))


contact_rules = AppGroup("contact-rules", help="Manage the notification rules of users.")
for act in list_actions(rule_actions, "contact_rules"):
    contact_rules.add_command(build_command(act, is_for_user=True))
