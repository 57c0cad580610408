"""/api/v4/projects/:id/maintenance_windows: when alerts page nobody."""

from domain.maintenance_windows import actions
from web.api.operations import Resources

maintenance_windows = Resources(
    "maintenance_windows", __name__, url_prefix="/projects/<path:reference>/maintenance_windows"
)
maintenance_windows.bind("GET", "", actions.list_windows)
maintenance_windows.bind("GET", "/<int:window_id>", actions.show_window)
maintenance_windows.bind("POST", "", actions.create_window)
maintenance_windows.bind("PUT", "/<int:window_id>", actions.change_window)
maintenance_windows.bind("DELETE", "/<int:window_id>", actions.delete_window)
