"""/api/v4/projects/:id/heartbeats: heartbeats, their URLs and their logs."""

from domain.database.paging import LARGEST_ID
from domain.heartbeats import actions
from web.api.operations import Resources

#: The converter refuses numbers that databases reject.
_ONE = f"/<int(max={LARGEST_ID}):heartbeat_id>"

heartbeats = Resources("heartbeats", __name__, url_prefix="/projects/<path:reference>/heartbeats")
heartbeats.bind_usual(actions, _ONE)
heartbeats.bind("POST", f"{_ONE}/pause", actions.pause_heartbeat, status=200)
heartbeats.bind("POST", f"{_ONE}/resume", actions.resume_heartbeat, status=200)
heartbeats.bind("GET", f"{_ONE}/url", actions.show_url, writes=True)
heartbeats.bind("POST", f"{_ONE}/reset_url", actions.reset_url)
heartbeats.bind("GET", f"{_ONE}/pings", actions.list_pings)
