"""Resources of projects and of the instance, with their requests, commands and forms."""

from collections.abc import Mapping

from tests.http.lives.life import (
    CONDITION_FIELDS,
    CONDITION_OPTIONS,
    CONDITIONS,
    OTHER_CONDITION_FIELDS,
    OTHER_CONDITION_OPTIONS,
    OTHER_CONDITIONS,
    PROJECT,
    Life,
    Page,
)

PROJECT_LIVES: Mapping[str, Life] = {
    "webhook": Life(
        at=f"{PROJECT}/webhooks",
        new={
            **CONDITIONS,
            "url": "https://hook.example/one?key=1",
            "events": ["alert.opened", "alert.resolved"],
        },
        shown={
            **CONDITIONS,
            "events": ["alert.opened", "alert.resolved"],
            "url": "https://hook.example/one?key=1",
            "state": "active",
        },
        change={
            **OTHER_CONDITIONS,
            "url": "https://hook.example/two",
            "events": ["alert.acknowledged"],
        },
        changed={
            **OTHER_CONDITIONS,
            "events": ["alert.acknowledged"],
            "url": "https://hook.example/two",
        },
        commands=(
            "webhooks create {project} --url https://hook.example/one?key=1"
            " --events alert.opened --events alert.resolved "
            + CONDITION_OPTIONS.replace("--matcher", "--labels"),
            "webhooks change {project} {id} --url https://hook.example/two"
            " --events alert.acknowledged "
            + OTHER_CONDITION_OPTIONS.replace("--matcher", "--labels"),
            "webhooks delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/settings/webhooks/new",
                to="/new",
                fields={
                    **CONDITION_FIELDS,
                    "url": "https://hook.example/one?key=1",
                    "events": ["alert.opened", "alert.resolved"],
                },
            ),
            Page(
                at="/{project}/-/settings/webhooks/{id}",
                to="/webhooks/{id}",
                fields={
                    **OTHER_CONDITION_FIELDS,
                    "url": "https://hook.example/two",
                    "events": ["alert.acknowledged"],
                },
            ),
            Page(at="/{project}/-/settings/webhooks/{id}", to="/delete"),
        ),
    ),
    "incident": Life(
        at=f"{PROJECT}/incidents",
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
        at=f"{PROJECT}/incidents/{{incident}}/notes",
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
        at=f"{PROJECT}/incident_rules",
        new={
            **CONDITIONS,
            "name": "Web",
            "close_when_resolved": True,
            "open_when_silenced": True,
            "quiet_alerts": True,
            "active": True,
        },
        shown={
            **CONDITIONS,
            "name": "Web",
            "close_when_resolved": True,
            "open_when_silenced": True,
            "quiet_alerts": True,
            "active": True,
        },
        change={
            **OTHER_CONDITIONS,
            "name": "Database",
            "close_when_resolved": False,
            "open_when_silenced": False,
            "quiet_alerts": False,
        },
        changed={
            **OTHER_CONDITIONS,
            "name": "Database",
            "close_when_resolved": False,
            "open_when_silenced": False,
            "quiet_alerts": False,
        },
        commands=(
            (
                "incident-rules create {project} --name Web --close-when-resolved"
                f" --open-when-silenced --quiet-alerts --on {CONDITION_OPTIONS}"
            ),
            (
                "incident-rules change {project} {id} --name Database --close-by-hand"
                f" --skip-silenced --page-alerts {OTHER_CONDITION_OPTIONS}"
            ),
            "incident-rules delete {project} {id}",
        ),
        pages=(
            Page(
                at="/{project}/-/incidents/rules",
                to="/rules",
                fields={
                    **CONDITION_FIELDS,
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
                    **OTHER_CONDITION_FIELDS,
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
        at=f"{PROJECT}/alert_management_integrations",
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
    "environment": Life(
        at=f"{PROJECT}/environments",
        new={"name": "review", "external_url": "https://review.example"},
        shown={"name": "review", "state": "available"},
        change={"external_url": "https://other.example"},
        changed={"external_url": "https://other.example"},
        interfaces=("api",),
    ),
    "deployment": Life(
        at=f"{PROJECT}/deployments",
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
        at=f"{PROJECT}/releases",
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
        at=f"{PROJECT}/releases/v0.1/assets/links",
        new={"name": "Notes", "url": "https://notes.example", "link_type": "runbook"},
        shown={"name": "Notes", "url": "https://notes.example", "link_type": "runbook"},
        change={"name": "Image", "url": "https://image.example", "link_type": "image"},
        changed={"name": "Image", "url": "https://image.example", "link_type": "image"},
        interfaces=("api",),
    ),
    "member": Life(
        at=f"{PROJECT}/members",
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
        at=f"{PROJECT}/members",
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
        at=f"{PROJECT}/access_tokens",
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
