"""Commands for users' own on-call shifts and absences."""

from flask.cli import AppGroup

from domain.access.actions import list_actions
from domain.paging.on_call import calendar_feeds, my_on_call
from domain.paging.on_call.absences import actions as absence_actions
from web.commands.action_commands import build_command

on_call = AppGroup(
    "on-call", help="Show the on-call shifts of a user, or let another user cover them."
)
for module in (my_on_call, calendar_feeds):
    for own in list_actions(module, "own_on_call"):
        on_call.add_command(build_command(own, is_for_user=True))

absences = AppGroup("absences", help="Manage the absences of users.")
for own in list_actions(absence_actions, "own_absences"):
    absences.add_command(build_command(own, is_for_user=True, key="absences"))
