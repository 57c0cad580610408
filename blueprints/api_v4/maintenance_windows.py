"""/api/v4/projects/:id/maintenance_windows: when alerts page nobody."""

from domain.maintenance_windows import actions
from web.api.operations import Resources

maintenance_windows = Resources(
    "maintenance_windows", __name__, url_prefix="/projects/<path:reference>/maintenance_windows"
)
maintenance_windows.bind_usual(actions, "/<int:window_id>")
