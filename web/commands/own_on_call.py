"""Commands for users' own on-call shifts."""

from flask.cli import AppGroup

from domain.access.actions import list_operations
from domain.paging.on_call import feeds, my_on_call
from web.commands.generated import build_command

on_call = AppGroup(
    "on-call", help="Show the on-call shifts of a user, or let another user cover them."
)
for module in (my_on_call, feeds):
    for own in list_operations(module, "own_on_call"):
        on_call.add_command(build_command(own, is_for_user=True))
