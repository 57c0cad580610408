"""Help texts for commands whose actions are described from the caller's point of view.

The actions' own texts are also API descriptions, in which the caller is the owner of the data. An
operator acts on the data of other users.
"""

from collections.abc import Mapping

#: Help texts by name of the action in the table of permissions, optionally followed by a field.
TEXTS: Mapping[str, str] = {
    "alerts.snooze.tomorrow": "Snooze until 9:00 of the next day in UTC.",
    "contact_rules.summary": (
        "Summarize the notification rules of a user and the alerts that no rule matches."
    ),
    "contacts.create": "Create a confirmed contact for a user.",
    "groups.index": "List all groups.",
    "groups.projects": "List the projects of a group.",
    "groups.transfer_locations": "List the groups to which a group can be transferred.",
    "members.delete": "Remove a direct member of a group or project.",
    "own_absences.create": "Create an absence of a user, who stays on call and is still paged.",
    "own_absences.delete": "Delete an absence of a user, unless a calendar contains it.",
    "own_absences.index": "List the current and future absences of a user.",
    "own_on_call.cover": "Let another user cover the shifts of a user, in one schedule or in all.",
    "own_on_call.cover.user": "User who covers the shifts.",
    "own_on_call.cover.schedules": "Id of a schedule. The default is all schedules of the user.",
    "own_on_call.end_calendar": "Revoke the URL of a user's on-call calendar.",
    "own_on_call.preview_cover": "Preview which shifts of a user another user would cover.",
    "own_on_call.preview_cover.user": "User who would cover the shifts.",
    "own_on_call.renew_calendar": (
        "Create a secret URL for a user's on-call calendar, and revoke the previous URL."
    ),
    "own_on_call.show": (
        "Show the shifts of a user, and the open alerts and incidents that paged the user."
    ),
    "own_on_call.show_calendar": (
        "Show when the URL of a user's on-call calendar was created and last read."
    ),
    "personal_access_tokens.create_own": (
        "Create a personal access token for a user. It is shown only once."
    ),
    "personal_access_tokens.index": "List the personal access tokens of a user.",
    "projects.index": "List all projects, or the projects of a group and its subgroups.",
    "projects.transfer": "Transfer a project to another group.",
    "projects.transfer_locations": "List the groups to which a project can be transferred.",
    "users.export": "Export a user's personal data.",
}


def get_help_text(action: str, field: str = "") -> str:
    """Return the help text for an action or for one of its fields, or an empty string."""
    return TEXTS.get(f"{action}.{field}" if field else action, "")
