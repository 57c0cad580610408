"""Resources that control paging, with their requests, commands and forms."""

from collections.abc import Mapping

from tests.http.lives.life import (
    CONDITION_FIELDS,
    CONDITION_OPTIONS,
    CONDITIONS,
    LATER,
    OTHER_CONDITION_FIELDS,
    OTHER_CONDITION_OPTIONS,
    OTHER_CONDITIONS,
    PROJECT,
    SCHEDULES,
    STILL_LATER,
    Life,
    Page,
)

#: A calendar of absences or holidays.
CALENDAR = {"name": "Vacation", "url": "https://calendar.invalid/secret.ics"}
PAGING_LIVES: Mapping[str, Life] = {
    "silence": Life(
        at=f"{PROJECT}/silences",
        new={"matchers": ['a="b"'], "comment": "Works", "ends_at": LATER},
        shown={"matchers": ['a="b"'], "comment": "Works", "state": "active"},
        change={"comment": "Longer works", "ends_at": STILL_LATER},
        changed={"ends_at": STILL_LATER, "state": "active"},
        ended={"state": "expired"},
        commands=(
            "silences create {project} --matcher a=b --comment Works --ends-at " + LATER,
            "silences change {project} {id} --comment 'Longer works' --ends-at " + STILL_LATER,
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
        at=f"{PROJECT}/maintenance_windows",
        new={
            **CONDITIONS,
            "name": "Sunday",
            "starts_at": "2031-05-04T03:00:00",
            "duration": "2h",
            "time_zone": "Europe/Berlin",
            "repeat": "weekly",
        },
        shown={
            **CONDITIONS,
            "name": "Sunday",
            "starts_at": "2031-05-04T03:00",
            "duration": "2h",
            "time_zone": "Europe/Berlin",
        },
        change={
            **OTHER_CONDITIONS,
            "name": "Monday",
            "starts_at": "2031-05-05T04:00:00",
            "duration": "90m",
            "time_zone": "UTC",
        },
        changed={
            **OTHER_CONDITIONS,
            "name": "Monday",
            "starts_at": "2031-05-05T04:00",
            "duration": "1h30m",
            "time_zone": "UTC",
        },
        commands=(
            (
                "maintenance-windows create {project} --name Sunday --starts 2031-05-04T03:00:00"
                f" --for 2h --time-zone Europe/Berlin --repeat weekly {CONDITION_OPTIONS}"
            ),
            (
                "maintenance-windows change {project} {id} --name Monday"
                " --starts 2031-05-05T04:00:00"
                f" --for 90m --time-zone UTC {OTHER_CONDITION_OPTIONS}"
            ),
            "maintenance-windows delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/maintenance_windows/new",
                to="/new",
                fields={
                    **CONDITION_FIELDS,
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
                    **OTHER_CONDITION_FIELDS,
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
        at=f"{PROJECT}/heartbeats",
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
    "escalation policy": Life(
        at=f"{PROJECT}/escalation_policies",
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
        at=f"{PROJECT}/alert_routes",
        new={**CONDITIONS, "name": "Web", "escalation_policy_id": "{policy_id}"},
        shown={**CONDITIONS, "name": "Web", "escalation_policy_id": "{policy_id}"},
        change={**OTHER_CONDITIONS, "name": "Database", "escalation_policy_id": None},
        changed={**OTHER_CONDITIONS, "name": "Database", "escalation_policy_id": None},
        commands=(
            "alert-routes create {project} --name Web --policy {policy_id} " + CONDITION_OPTIONS,
            "alert-routes change {project} {id} --name Database --nobody "
            + OTHER_CONDITION_OPTIONS,
            "alert-routes delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/on_call/routes/new",
                to="/new",
                fields={**CONDITION_FIELDS, "name": "Web", "policy": "{policy_id}"},
            ),
            Page(
                at="/{project}/-/on_call/routes/{id}",
                to="/routes/{id}",
                fields={**OTHER_CONDITION_FIELDS, "name": "Database", "policy": "nobody"},
            ),
            Page(at="/{project}/-/on_call/routes", to="/routes/{id}/delete"),
        ),
    ),
    "schedule": Life(
        at=SCHEDULES,
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
        at=SCHEDULES + "/{schedule_id}/overrides",
        new={"user": "{user}", "starts_at": LATER, "ends_at": STILL_LATER, "in_addition": True},
        shown={"starts_at": LATER, "ends_at": STILL_LATER, "in_addition": True},
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
    "absence": Life(
        at="/user/on_call/absences",
        new={"starts_at": LATER, "ends_at": STILL_LATER, "note": "Vacation"},
        shown={"starts_at": LATER, "ends_at": STILL_LATER, "note": "Vacation"},
        pages=(
            Page(
                at="/-/on_call/absences/new",
                to="/new",
                fields={
                    "starts_at": "{later_local}",
                    "ends_at": "{still_later_local}",
                    "note": "Vacation",
                },
            ),
            None,
            Page(at="/-/on_call", to="/absences/{id}/delete"),
        ),
        is_only_listed=True,
        interfaces=("api", "pages"),
    ),
    "absence calendar": Life(
        at="/user/on_call/absence_calendars",
        new=CALENDAR,
        shown={"name": "Vacation", "host": "calendar.invalid"},
        pages=(
            Page(at="/-/on_call/absence_calendars/new", to="/new", fields=CALENDAR),
            None,
            Page(at="/-/on_call", to="/absence_calendars/{id}/delete"),
        ),
        is_only_listed=True,
        interfaces=("api", "pages"),
    ),
    "holiday calendar": Life(
        at=SCHEDULES + "/{schedule_id}/holiday_calendars",
        new=CALENDAR,
        shown={"name": "Vacation", "host": "calendar.invalid"},
        pages=(
            Page(
                at="/{project}/-/on_call/schedules/{schedule_id}/holiday_calendars/new",
                to="/new",
                fields=CALENDAR,
            ),
            None,
            Page(
                at="/{project}/-/on_call/schedules/{schedule_id}",
                to="/holiday_calendars/{id}/delete",
            ),
        ),
        is_only_listed=True,
        interfaces=("api", "pages"),
    ),
    "handoff note": Life(
        at=SCHEDULES + "/{schedule_id}/handover_notes",
        new={"text": "All is quiet."},
        shown={"text": "All is quiet."},
        commands=(
            "handoff-notes create {project} {schedule_id} --text 'All is quiet.'",
            "",
            "handoff-notes delete {project} {schedule_id} {id}",
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
    "channel": Life(
        at=f"{PROJECT}/notification_channels",
        new={"type": "email", "address": "team@people.example", "label": "Team"},
        shown={"type": "email", "label": "Team"},
        change={"label": "Crew", "address": "crew@people.example"},
        changed={"label": "Crew", "address": "crew@people.example", "state": "ready"},
        commands=(
            "channels create {project} --type email --address team@people.example --name Team",
            "channels change {project} {id} --address crew@people.example --name Crew",
            "channels delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/settings/channels?service=email",
                to="/channels",
                fields={"address": "team@people.example", "label": "Team"},
            ),
            Page(
                at="/{project}/-/settings/channels/{id}",
                to="/channels/{id}",
                fields={"address": "crew@people.example", "label": "Crew"},
            ),
            Page(at="/{project}/-/settings/channels", to="/channels/{id}/delete"),
        ),
    ),
    "contact": Life(
        at="/user/contacts",
        new={"type": "apprise", "address": "ntfys://ntfy.example/{project_id}", "label": "Phone"},
        shown={"type": "apprise", "label": "Phone"},
        change={"label": "Bedside"},
        changed={"label": "Bedside"},
        commands=(
            (
                "contacts create {user} --type apprise --address ntfys://ntfy.example/{project_id}"
                " --name Phone"
            ),
            "contacts change {user} {id} --name Bedside",
            "contacts delete {user} {id}",
        ),
        pages=(
            Page(
                at="/-/user_settings/contacts?service=ntfy",
                to="/contacts",
                fields={
                    "server": "https://ntfy.example",
                    "topic": "{project_id}",
                    "label": "Phone",
                },
            ),
            Page(
                at="/-/user_settings/contacts/{id}",
                to="/contacts/{id}",
                fields={"label": "Bedside"},
            ),
            Page(at="/-/user_settings/contacts", to="/contacts/{id}/delete"),
        ),
    ),
}
