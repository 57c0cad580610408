"""The life of each kind of resource: how each interface creates, changes and ends one.

What came of it is read from the API, so all interfaces have to bring about the same. Texts in
braces are replaced by what a test has: `{project}` is the path of a project, `{id}` the resource.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_PROJECT = "/projects/{project_id}"
_SCHEDULES = f"{_PROJECT}/on_call/schedules"
_LATER, _STILL_LATER = "{later}", "{still_later}"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A form of a page: where it is, where it is sent, and what is filled in."""

    at: str
    #: The ending of the address that the form is sent to: of several forms the right one.
    to: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Life:
    """The life of a resource."""

    #: The URL of its list in the API.
    at: str
    #: What the API is sent, and what it shows afterwards.
    new: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)
    change: Mapping[str, Any] | None = None
    changed: Mapping[str, Any] = field(default_factory=dict)
    #: What the API shows after the end; None if it is gone.
    ended: Mapping[str, Any] | None = None
    #: The field whose value is in the URL.
    key: str = "id"
    #: The commands that create, change and end it, as one types them.
    commands: tuple[str, ...] = ()
    #: The pages that do.
    pages: tuple[Page | None, ...] = ()
    #: Whether its list is read to show one: it has no URL to GET.
    is_only_listed: bool = False
    #: The interfaces that have it.
    interfaces: tuple[str, ...] = ("api", "commands", "pages")


_CONDITIONS = {
    "severities": ["critical", "high"],
    "environments": ["production"],
    "services": ["checkout"],
    "labels": ['team="web"'],
}
_OTHER_CONDITIONS = {
    "severities": ["low"],
    "environments": ["staging"],
    "services": ["search"],
    "labels": ['team="db"'],
}
_CONDITION_OPTIONS = (
    "--severity critical --severity high --environment production --service checkout"
    " --matcher 'team=\"web\"'"
)
_OTHER_CONDITION_OPTIONS = (
    "--severity low --environment staging --service search --matcher 'team=\"db\"'"
)
_CONDITION_FIELDS = {
    "severities": ["critical", "high"],
    "environments": "production",
    "services": "checkout",
    "labels": 'team="web"',
}
_OTHER_CONDITION_FIELDS = {
    "severities": ["low"],
    "environments": "staging",
    "services": "search",
    "labels": 'team="db"',
}

LIVES: Mapping[str, Life] = {
    "silence": Life(
        at=f"{_PROJECT}/silences",
        new={"matchers": ['a="b"'], "comment": "Works", "ends_at": _LATER},
        shown={"matchers": ['a="b"'], "comment": "Works", "state": "active"},
        change={"comment": "Longer works", "ends_at": _STILL_LATER},
        changed={"ends_at": _STILL_LATER, "state": "active"},
        ended={"state": "expired"},
        commands=(
            "silences create {project} --matcher a=b --comment Works --ends-at " + _LATER,
            "silences change {project} {id} --comment 'Longer works' --ends-at " + _STILL_LATER,
            "silences expire {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/silences/new",
                to="/silences/new",
                fields={"matchers": "a=b", "comment": "Works", "duration": "2h"},
            ),
            Page(at="/{project}/-/silences/{id}", to="/extend", fields={"duration": "5d"}),
            Page(at="/{project}/-/silences/{id}", to="/expire"),
        ),
    ),
    "maintenance window": Life(
        at=f"{_PROJECT}/maintenance_windows",
        new={
            **_CONDITIONS,
            "name": "Sunday",
            "starts_at": "2031-05-04T03:00:00",
            "duration": "2h",
            "time_zone": "Europe/Berlin",
            "repeat": "weekly",
        },
        shown={
            **_CONDITIONS,
            "name": "Sunday",
            "starts_at": "2031-05-04T03:00",
            "duration": "2h",
            "time_zone": "Europe/Berlin",
        },
        change={
            **_OTHER_CONDITIONS,
            "name": "Monday",
            "starts_at": "2031-05-05T04:00:00",
            "duration": "90m",
            "time_zone": "UTC",
        },
        changed={
            **_OTHER_CONDITIONS,
            "name": "Monday",
            "starts_at": "2031-05-05T04:00",
            "duration": "1h30m",
            "time_zone": "UTC",
        },
        commands=(
            (
                "maintenance-windows create {project} --name Sunday --starts 2031-05-04T03:00:00"
                f" --for 2h --time-zone Europe/Berlin --repeat weekly {_CONDITION_OPTIONS}"
            ),
            (
                "maintenance-windows change {project} {id} --name Monday"
                " --starts 2031-05-05T04:00:00"
                f" --for 90m --time-zone UTC {_OTHER_CONDITION_OPTIONS}"
            ),
            "maintenance-windows delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/maintenance_windows/new",
                to="/new",
                fields={
                    **_CONDITION_FIELDS,
                    "name": "Sunday",
                    "starts_at": "2031-05-04T03:00",
                    "duration": "2h",
                    "time_zone": "Europe/Berlin",
                    "repeats": "weekly",
                    "weekdays": ["SU"],
                },
            ),
            Page(
                at="/{project}/-/maintenance_windows/{id}/edit",
                to="/edit",
                fields={
                    **_OTHER_CONDITION_FIELDS,
                    "name": "Monday",
                    "starts_at": "2031-05-05T04:00",
                    "duration": "90m",
                    "time_zone": "UTC",
                    "weekdays": ["MO"],
                },
            ),
            Page(at="/{project}/-/maintenance_windows", to="/maintenance_windows/{id}/delete"),
        ),
    ),
    "heartbeat": Life(
        at=f"{_PROJECT}/heartbeats",
        new={
            "name": "Backup",
            "every": "6h",
            "grace": "5m",
            "description": "Copies the database.",
            "severity": "high",
            "environment": "production",
        },
        shown={
            "name": "Backup",
            "every": 21_600,
            "grace": 300,
            "description": "Copies the database.",
            "severity": "high",
            "environment": "production",
        },
        change={
            "name": "Nightly",
            "cron": "30 3 * * *",
            "every": "",
            "time_zone": "Europe/Berlin",
            "grace": "10m",
            "description": "Copies it all.",
            "severity": "low",
            "environment": "staging",
        },
        changed={
            "name": "Nightly",
            "cron": "30 3 * * *",
            "every": None,
            "time_zone": "Europe/Berlin",
            "grace": 600,
            "description": "Copies it all.",
            "severity": "low",
            "environment": "staging",
        },
        commands=(
            (
                "heartbeats create {project} --name Backup --every 6h --grace 5m --severity high"
                " --description 'Copies the database.' --environment production"
            ),
            (
                "heartbeats change {project} {id} --name Nightly --every '' --cron '30 3 * * *'"
                " --time-zone Europe/Berlin --grace 10m"
                " --description 'Copies it all.' --severity low"
                " --environment staging"
            ),
            "heartbeats delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/heartbeats/new",
                to="/new",
                fields={
                    "name": "Backup",
                    "kind": "interval",
                    "every": "6h",
                    "grace": "5m",
                    "severity": "high",
                    "description": "Copies the database.",
                    "environment": "production",
                },
            ),
            Page(
                at="/{project}/-/heartbeats/{id}/edit",
                to="/edit",
                fields={
                    "name": "Nightly",
                    "kind": "cron",
                    "cron": "30 3 * * *",
                    "time_zone": "Europe/Berlin",
                    "grace": "10m",
                    "severity": "low",
                    "description": "Copies it all.",
                    "environment": "staging",
                },
            ),
            Page(at="/{project}/-/heartbeats/{id}/edit", to="/delete"),
        ),
    ),
    "webhook": Life(
        at=f"{_PROJECT}/webhooks",
        new={
            **_CONDITIONS,
            "url": "https://hook.example/one?key=1",
            "events": ["alert.opened", "alert.resolved"],
        },
        shown={
            **_CONDITIONS,
            "events": ["alert.opened", "alert.resolved"],
            "url": "https://hook.example/one?key=1",
            "state": "active",
        },
        change={
            **_OTHER_CONDITIONS,
            "url": "https://hook.example/two",
            "events": ["alert.acknowledged"],
        },
        changed={
            **_OTHER_CONDITIONS,
            "events": ["alert.acknowledged"],
            "url": "https://hook.example/two",
        },
        commands=(
            "webhooks create {project} --url https://hook.example/one?key=1"
            " --events alert.opened --events alert.resolved "
            + _CONDITION_OPTIONS.replace("--matcher", "--labels"),
            "webhooks change {project} {id} --url https://hook.example/two"
            " --events alert.acknowledged "
            + _OTHER_CONDITION_OPTIONS.replace("--matcher", "--labels"),
            "webhooks delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/settings/webhooks/new",
                to="/new",
                fields={
                    **_CONDITION_FIELDS,
                    "url": "https://hook.example/one?key=1",
                    "events": ["alert.opened", "alert.resolved"],
                },
            ),
            Page(
                at="/{project}/-/settings/webhooks/{id}",
                to="/webhooks/{id}",
                fields={
                    **_OTHER_CONDITION_FIELDS,
                    "url": "https://hook.example/two",
                    "events": ["alert.acknowledged"],
                },
            ),
            Page(at="/{project}/-/settings/webhooks/{id}", to="/delete"),
        ),
    ),
    "escalation policy": Life(
        at=f"{_PROJECT}/escalation_policies",
        new={
            "name": "Night",
            "steps": [{"delay": "5m", "targets": [{"type": "user", "id": "{user_id}"}]}],
            "repeats": 3,
            "repeat_pause": "10m",
            "acknowledgement_timeout": "30m",
            "default": True,
        },
        shown={
            "name": "Night",
            "repeats": 3,
            "repeat_pause_seconds": 600,
            "acknowledgement_timeout_seconds": 1_800,
            "default": True,
        },
        change={
            "name": "Day",
            "repeats": 1,
            "repeat_pause": "7m",
            "acknowledgement_timeout": None,
            "default": False,
        },
        changed={
            "name": "Day",
            "repeats": 1,
            "repeat_pause_seconds": 420,
            "acknowledgement_timeout_seconds": None,
            "default": False,
        },
        commands=(
            (
                "escalations create {project} --name Night --step '5m user:{user}' --repeats 3"
                " --repeat-pause 10m --acknowledgement-timeout 30m --default"
            ),
            (
                "escalations change {project} {id} --name Day --repeats 1 --repeat-pause 7m"
                " --no-acknowledgement-timeout --no-default"
            ),
            "escalations delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/on_call/policies/new",
                to="/new",
                fields={
                    "name": "Night",
                    "steps-0-after": "5m",
                    "steps-0-targets-0": "user:{user_id}",
                    "repeats": "3",
                    "repeat_pause": "10m",
                    "acknowledgement_timeout": "30m",
                    "is_default": "y",
                },
            ),
            Page(
                at="/{project}/-/on_call/policies/{id}",
                to="/policies/{id}",
                fields={
                    "name": "Day",
                    "repeats": "1",
                    "repeat_pause": "7m",
                    "acknowledgement_timeout": "",
                    "is_default": None,
                },
            ),
            Page(at="/{project}/-/on_call/policies", to="/policies/{id}/delete"),
        ),
    ),
    "alert route": Life(
        at=f"{_PROJECT}/alert_routes",
        new={**_CONDITIONS, "name": "Web", "escalation_policy_id": "{policy_id}"},
        shown={**_CONDITIONS, "name": "Web", "escalation_policy_id": "{policy_id}"},
        change={**_OTHER_CONDITIONS, "name": "Database", "escalation_policy_id": None},
        changed={**_OTHER_CONDITIONS, "name": "Database", "escalation_policy_id": None},
        commands=(
            "alert-routes create {project} --name Web --policy {policy_id} " + _CONDITION_OPTIONS,
            "alert-routes change {project} {id} --name Database --nobody "
            + _OTHER_CONDITION_OPTIONS,
            "alert-routes delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/on_call/routes/new",
                to="/new",
                fields={**_CONDITION_FIELDS, "name": "Web", "policy": "{policy_id}"},
            ),
            Page(
                at="/{project}/-/on_call/routes/{id}",
                to="/routes/{id}",
                fields={**_OTHER_CONDITION_FIELDS, "name": "Database", "policy": "nobody"},
            ),
            Page(at="/{project}/-/on_call/routes", to="/routes/{id}/delete"),
        ),
    ),
    "schedule": Life(
        at=_SCHEDULES,
        new={"name": "Primary", "time_zone": "Europe/Berlin", "description": "First line."},
        shown={"name": "Primary", "time_zone": "Europe/Berlin", "description": "First line."},
        change={"name": "Secondary", "time_zone": "UTC", "description": "Second line."},
        changed={"name": "Secondary", "time_zone": "UTC", "description": "Second line."},
        commands=(
            (
                "schedules create {project} --name Primary --time-zone Europe/Berlin"
                " --description 'First line.'"
            ),
            (
                "schedules change {project} {id} --name Secondary --time-zone UTC"
                " --description 'Second line.'"
            ),
            "schedules delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/on_call/schedules/new",
                to="/new",
                fields={
                    "name": "Primary",
                    "time_zone": "Europe/Berlin",
                    "description": "First line.",
                },
            ),
            Page(
                at="/{project}/-/on_call/schedules/{id}/edit",
                to="/edit",
                fields={"name": "Secondary", "time_zone": "UTC", "description": "Second line."},
            ),
            Page(at="/{project}/-/on_call/schedules/{id}", to="/schedules/{id}/delete"),
        ),
    ),
    "override": Life(
        at=_SCHEDULES + "/{schedule_id}/overrides",
        new={"user": "{user}", "starts_at": _LATER, "ends_at": _STILL_LATER, "in_addition": True},
        shown={"starts_at": _LATER, "ends_at": _STILL_LATER, "in_addition": True},
        pages=(
            Page(
                at="/{project}/-/on_call/schedules/{schedule_id}/overrides/new",
                to="/new",
                fields={
                    "user": "{user}",
                    "instead_of": "+",
                    "starts_at": "{later_local}",
                    "ends_at": "{still_later_local}",
                },
            ),
            None,
            Page(at="/{project}/-/on_call/schedules/{schedule_id}", to="/overrides/{id}/delete"),
        ),
        interfaces=("api", "pages"),
    ),
    "handover note": Life(
        at=_SCHEDULES + "/{schedule_id}/handover_notes",
        new={"text": "All is quiet."},
        shown={"text": "All is quiet."},
        commands=(
            "handover-notes create {project} {schedule_id} --text 'All is quiet.'",
            "",
            "handover-notes delete {project} {schedule_id} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/on_call/schedules/{schedule_id}/handover_notes/new",
                to="/new",
                fields={"text": "All is quiet."},
            ),
            None,
            Page(
                at="/{project}/-/on_call/schedules/{schedule_id}",
                to="/handover_notes/{id}/delete",
            ),
        ),
        is_only_listed=True,
    ),
    "incident": Life(
        at=f"{_PROJECT}/incidents",
        key="iid",
        new={"title": "Shop is slow", "description": "Since noon.", "severity": "high"},
        shown={
            "title": "Shop is slow",
            "description": "Since noon.",
            "severity": "high",
            "status": "triggered",
        },
        change={"title": "Shop is down", "description": "Since one.", "severity": "critical"},
        changed={"title": "Shop is down", "description": "Since one."},
        commands=(
            (
                "incidents create {project} --title 'Shop is slow' --description 'Since noon.'"
                " --severity high"
            ),
            (
                "incidents change {project} {id} --title 'Shop is down' --description 'Since one.'"
                " --severity critical"
            ),
            "incidents delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/incidents/new",
                to="/new",
                fields={
                    "title": "Shop is slow",
                    "description": "Since noon.",
                    "severity": "high",
                },
            ),
            Page(
                at="/{project}/-/incidents/{id}",
                to="/edit",
                fields={"title": "Shop is down", "description": "Since one."},
            ),
            Page(at="/{project}/-/incidents/{id}", to="/delete"),
        ),
    ),
    "incident note": Life(
        at=f"{_PROJECT}/incidents/{{incident}}/notes",
        new={"body": "Looking."},
        shown={"body": "Looking."},
        change={"body": "Found."},
        changed={"body": "Found."},
        pages=(
            Page(
                at="/{project}/-/incidents/{incident}",
                to="/notes",
                fields={"text": "Looking."},
            ),
            Page(
                at="/{project}/-/incidents/{incident}",
                to="/notes/{id}/edit",
                fields={"text": "Found."},
            ),
            Page(at="/{project}/-/incidents/{incident}", to="/notes/{id}/delete"),
        ),
        interfaces=("api", "pages"),
    ),
    "incident rule": Life(
        at=f"{_PROJECT}/incident_rules",
        new={
            **_CONDITIONS,
            "name": "Web",
            "close_when_resolved": True,
            "open_when_silenced": True,
            "quiet_alerts": True,
            "active": True,
        },
        shown={
            **_CONDITIONS,
            "name": "Web",
            "close_when_resolved": True,
            "open_when_silenced": True,
            "quiet_alerts": True,
            "active": True,
        },
        change={
            **_OTHER_CONDITIONS,
            "name": "Database",
            "close_when_resolved": False,
            "open_when_silenced": False,
            "quiet_alerts": False,
        },
        changed={
            **_OTHER_CONDITIONS,
            "name": "Database",
            "close_when_resolved": False,
            "open_when_silenced": False,
            "quiet_alerts": False,
        },
        commands=(
            (
                "incident-rules create {project} --name Web --close-when-resolved"
                f" --open-when-silenced --quiet-alerts --on {_CONDITION_OPTIONS}"
            ),
            (
                "incident-rules change {project} {id} --name Database --close-by-hand"
                f" --skip-silenced --page-alerts {_OTHER_CONDITION_OPTIONS}"
            ),
            "incident-rules delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/incidents/rules",
                to="/rules",
                fields={
                    **_CONDITION_FIELDS,
                    "name": "Web",
                    "close_when_resolved": "y",
                    "open_when_silenced": "y",
                    "quiet_alerts": "y",
                },
            ),
            Page(
                at="/{project}/-/incidents/rules/{id}",
                to="/rules/{id}",
                fields={
                    **_OTHER_CONDITION_FIELDS,
                    "name": "Database",
                    "close_when_resolved": None,
                    "open_when_silenced": None,
                    "quiet_alerts": None,
                },
            ),
            Page(at="/{project}/-/incidents/rules", to="/rules/{id}/delete"),
        ),
    ),
    "integration": Life(
        at=f"{_PROJECT}/alert_management_integrations",
        new={"type": "http", "name": "Nagios", "resolve_after_minutes": 30},
        shown={"type": "http", "name": "Nagios", "active": True, "resolve_after_minutes": 30},
        change={"name": "Icinga", "active": False, "resolve_after_minutes": 45},
        changed={"name": "Icinga", "active": False, "resolve_after_minutes": 45},
        commands=(
            "integrations create {project} --type http --name Nagios --resolve-after-minutes 30",
            (
                "integrations change {project} {id} --name Icinga --inactive"
                " --resolve-after-minutes 45"
            ),
            "integrations delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/settings/integrations/new",
                to="/new",
                fields={"type": "http", "name": "Nagios", "resolve_after_minutes": "30"},
            ),
            Page(
                at="/{project}/-/settings/integrations/{id}/configure",
                to="/configure",
                fields={"name": "Icinga", "active": None, "resolve_after_minutes": "45"},
            ),
            Page(at="/{project}/-/settings/integrations/{id}/delete", to="/delete"),
        ),
    ),
    "channel": Life(
        at=f"{_PROJECT}/notification_channels",
        new={"type": "email", "address": "team@people.example", "label": "Team"},
        shown={"type": "email", "label": "Team"},
        commands=(
            "channels create {project} --type email --address team@people.example --name Team",
            "",
            "channels delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/settings/channels",
                to="/channels",
                fields={"type": "email", "address": "team@people.example", "label": "Team"},
            ),
            None,
            Page(at="/{project}/-/settings/channels", to="/channels/{id}/delete"),
        ),
    ),
    "contact": Life(
        at="/user/contacts",
        new={"type": "apprise", "address": "ntfys://ntfy.example/{project_id}", "label": "Phone"},
        shown={"type": "apprise", "label": "Phone"},
        commands=(
            (
                "contacts create {user} --type apprise --address ntfys://ntfy.example/{project_id}"
                " --name Phone"
            ),
            "",
            "contacts delete {user} {id}",
        ),
        pages=(
            Page(
                at="/-/user_settings/contacts",
                to="/contacts",
                fields={
                    "type": "apprise",
                    "address": "ntfys://ntfy.example/{project_id}",
                    "label": "Phone",
                },
            ),
            None,
            Page(at="/-/user_settings/contacts", to="/contacts/{id}/delete"),
        ),
    ),
    "environment": Life(
        at=f"{_PROJECT}/environments",
        new={"name": "review", "external_url": "https://review.example"},
        shown={"name": "review", "state": "available"},
        change={"external_url": "https://other.example"},
        changed={"external_url": "https://other.example"},
        interfaces=("api",),
    ),
    "deployment": Life(
        at=f"{_PROJECT}/deployments",
        new={
            "environment": "production",
            "sha": "4f2c1d6b8e9a0c3d5e7f9a1b2c3d4e5f60718293",
            "ref": "main",
            "tag": False,
            "status": "running",
        },
        shown={
            "sha": "4f2c1d6b8e9a0c3d5e7f9a1b2c3d4e5f60718293",
            "ref": "main",
            "status": "running",
        },
        change={"status": "canceled"},
        changed={"status": "canceled"},
        interfaces=("api",),
    ),
    "release": Life(
        at=f"{_PROJECT}/releases",
        key="tag_name",
        new={
            "tag_name": "v1.0",
            "name": "First",
            "description": "All of it.",
            "ref": "main",
            "released_at": "2026-01-02T03:04:05.000Z",
        },
        shown={"tag_name": "v1.0", "name": "First", "description": "All of it."},
        change={"name": "One", "description": "Some.", "released_at": "2026-02-03T04:05:06.000Z"},
        changed={
            "name": "One",
            "description": "Some.",
            "released_at": "2026-02-03T04:05:06.000Z",
        },
        interfaces=("api",),
    ),
    "release link": Life(
        at=f"{_PROJECT}/releases/v0.1/assets/links",
        new={"name": "Notes", "url": "https://notes.example", "link_type": "runbook"},
        shown={"name": "Notes", "url": "https://notes.example", "link_type": "runbook"},
        change={"name": "Image", "url": "https://image.example", "link_type": "image"},
        changed={"name": "Image", "url": "https://image.example", "link_type": "image"},
        interfaces=("api",),
    ),
    "member": Life(
        at=f"{_PROJECT}/members",
        new={"user_id": "{other_id}", "access_level": 30},
        shown={"username": "{other}", "access_level": 30},
        change={"access_level": 40},
        changed={"access_level": 40},
        commands=(
            "members add {project} {other} Developer",
            "members change {project} {other} Maintainer",
            "members remove {project} {other}",
        ),
        pages=(
            Page(
                at="/{project}/-/settings/members",
                to="/members",
                fields={"user": "{other}", "role": "30"},
            ),
            Page(
                at="/{project}/-/settings/members",
                to="/role",
                fields={"role": "40"},
            ),
            Page(at="/{project}/-/settings/members", to="/remove"),
        ),
    ),
    "member for a time": Life(
        at=f"{_PROJECT}/members",
        new={"user_id": "{other_id}", "access_level": 30, "expires_at": "2031-01-01"},
        shown={"username": "{other}", "access_level": 30, "expires_at": "2031-01-01"},
        change={"access_level": 40, "expires_at": "2032-02-02"},
        changed={"access_level": 40, "expires_at": "2032-02-02"},
        commands=(
            "members add {project} {other} Developer --expires-at 2031-01-01",
            "members change {project} {other} Maintainer --expires-at 2032-02-02",
            "members remove {project} {other}",
        ),
        interfaces=("api", "commands"),
    ),
    "member role": Life(
        at="/member_roles",
        new={
            "name": "Watcher {project_id}",
            "description": "Reads alerts.",
            "base_access_level": 10,
            "read_alerts": True,
            "admin_alerts": True,
        },
        shown={
            "name": "Watcher {project_id}",
            "description": "Reads alerts.",
            "base_access_level": 10,
            "read_alerts": True,
            "admin_alerts": True,
            "read_code": False,
        },
        commands=(
            (
                "member-roles create 'Watcher {project_id}' Guest --description 'Reads alerts.'"
                " --permission read_alerts --permission admin_alerts"
            ),
            "",
            "member-roles delete {id}",
        ),
        pages=(
            Page(
                at="/admin/member_roles/new",
                to="/new",
                fields={
                    "name": "Watcher {project_id}",
                    "description": "Reads alerts.",
                    "base": "GUEST",
                    "permissions": ["read_alerts", "admin_alerts"],
                },
            ),
            None,
            Page(at="/admin/member_roles", to="/member_roles/{id}/delete"),
        ),
        is_only_listed=True,
    ),
    "audit stream": Life(
        at="/audit_streams",
        new={"url": "https://audit.example/{project_id}", "paused": True},
        shown={"url": "https://audit.example/{project_id}", "state": "paused"},
        change={"url": "https://audit.example/other/{project_id}"},
        changed={"url": "https://audit.example/other/{project_id}"},
        commands=(
            "audit-streams create --url https://audit.example/{project_id} --paused",
            "audit-streams change {id} --url https://audit.example/other/{project_id}",
            "audit-streams delete {id}",
        ),
        interfaces=("api", "commands"),
    ),
    "project": Life(
        at="/projects",
        new={
            "name": "Made",
            "path": "made",
            "namespace_id": "{group_id}",
            "visibility": "internal",
            "description": "For tests.",
        },
        shown={"name": "Made", "path": "made", "visibility": "internal"},
        change={"name": "Changed", "visibility": "private", "description": "Other."},
        changed={"name": "Changed", "visibility": "private", "description": "Other."},
        commands=(
            "projects create {group}/made --visibility internal",
            "projects change {group}/made --name Changed --visibility private --description Other.",
            "projects delete {group}/made --yes",
        ),
        interfaces=("api",),
    ),
    "group": Life(
        at="/groups",
        new={"name": "Below", "path": "below", "parent_id": "{group_id}", "description": "Tests."},
        shown={"name": "Below", "path": "below", "description": "Tests."},
        change={"name": "Changed", "path": "changed", "description": "Other."},
        changed={"name": "Changed", "path": "changed", "description": "Other."},
        interfaces=("api",),
    ),
    "application": Life(
        at="/applications",
        new={
            "name": "Board {project_id}",
            "redirect_uri": "https://board.example/cb",
            "scopes": "api read_user",
        },
        shown={"application_name": "Board {project_id}", "confidential": True},
        is_only_listed=True,
        interfaces=("api",),
    ),
    "project token": Life(
        at=f"{_PROJECT}/access_tokens",
        new={
            "name": "Robot",
            "scopes": ["read_api"],
            "access_level": 30,
            "expires_at": "{next_month}",
            "description": "For CI.",
        },
        shown={
            "name": "Robot",
            "scopes": ["read_api"],
            "access_level": 30,
            "expires_at": "{next_month}",
            "description": "For CI.",
        },
        ended={"revoked": True},
        pages=(
            Page(
                at="/{project}/-/settings/access_tokens/new",
                to="/access_tokens/new",
                fields={
                    "name": "Robot",
                    "scopes": ["read_api"],
                    "role": "30",
                    "expires_at": "{next_month}",
                    "description": "For CI.",
                },
            ),
            None,
            Page(at="/{project}/-/settings/access_tokens", to="/access_tokens/{id}/revoke"),
        ),
        interfaces=("api", "pages"),
    ),
}
