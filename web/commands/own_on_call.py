"""Commands for users' own on-call shifts."""

from flask.cli import AppGroup

from domain.access.actions import operations_in
from domain.paging.on_call import feeds, my_on_call
from web.commands.generated import command_of

on_call = AppGroup(
    "on-call", help="Show the on-call shifts of a user, or let another user cover them."
)
for module in (my_on_call, feeds):
    for own in operations_in(module, "own_on_call"):
        on_call.add_command(command_of(own, is_for_user=True))
