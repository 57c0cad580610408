"""Commands for users' own on-call shifts and absences."""

from flask.cli import AppGroup

from domain.access.actions import list_operations
from domain.paging.on_call import feeds, my_on_call
from domain.paging.on_call.absences import actions as absence_actions
from web.commands.generated import build_command

on_call = AppGroup(
    "on-call", help="Show the on-call shifts of a user, or let another user cover them."
)
for module in (my_on_call, feeds):
    for own in list_operations(module, "own_on_call"):
        on_call.add_command(build_command(own, is_for_user=True))

absences = AppGroup("absences", help="Manage the absences of users.")
for own in list_operations(absence_actions, "own_absences"):
    absences.add_command(build_command(own, is_for_user=True, key="absences"))
