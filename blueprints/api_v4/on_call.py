"""/api/v4/projects/:id/on_call/schedules: schedules, who is on call, and changes of shifts."""

from domain.database.paging import LARGEST_ID
from domain.on_call import actions, change_actions
from web.api.operations import Resources

_AT = "/projects/<path:reference>/on_call/schedules"
#: The converter refuses numbers that databases reject.
_ONE = f"/<int(max={LARGEST_ID}):schedule_id>"
_OVERRIDE = f"/<int(max={LARGEST_ID}):override_id>"
_SWAP = f"/<int(max={LARGEST_ID}):swap_id>"

on_call_schedules = Resources("on_call_schedules", __name__, url_prefix=_AT)
on_call_schedules.bind_usual(actions, _ONE)
on_call_schedules.bind("GET", "/current", actions.show_all_on_call)
on_call_schedules.bind("GET", f"{_ONE}/current", actions.show_on_call)
on_call_schedules.bind("GET", f"{_ONE}/shifts", actions.list_shifts)

on_call_overrides = Resources("on_call_overrides", __name__, url_prefix=f"{_AT}{_ONE}/overrides")
on_call_overrides.bind_usual(change_actions, _OVERRIDE)

on_call_swaps = Resources("on_call_swaps", __name__, url_prefix=f"{_AT}{_ONE}/swaps")
on_call_swaps.bind_usual(change_actions, _SWAP)
