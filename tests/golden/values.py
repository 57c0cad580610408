"""Valid and invalid values of fields, by their names: for bodies, forms and commands."""

import json
from typing import Any, Final

from tests.golden.world import SHA

_LATER = "2031-03-10T09:00:00Z"
_SAMPLE = json.dumps({"title": "Disk full", "severity": "high", "host": "db1"})
_STEPS = [{"targets": [{"type": "user", "id": "{user_id}"}], "wait": "5m"}]

#: Values in bodies of the API, by field name. `{…}` is an object of the project.
GOOD: Final[dict[str, Any]] = {
    "access_level": 20,
    "active": True,
    "address": "someone@a.example",
    "alerts": [3],
    "allow_failure": False,
    "api_url": "https://tool.a.example/",
    "assignee": "dora",
    "base_access_level": 10,
    "body": "A comment.",
    "code": "123456",
    "comment": "We are moving house.",
    "confirmation": "{project_path}",
    "content": "curl https://x/api/v4/projects?private_token=secret",
    "context": "build",
    "coverage": 81.5,
    "description": "What it is for.",
    "duration": "3h",
    "email": "somebody@a.example",
    "ends_at": "2031-03-06T09:00:00Z",
    "environment": "production",
    "environments": ["production"],
    "escalation_policy_id": "{policy_id}",
    "events": ["alert.opened", "alert.resolved"],
    "every": "2h",
    "expires_at": "2031-04-01",
    "external_url": "https://shop.a.example/",
    "follow_ups": True,
    "grace": "10m",
    "iids": [1, 2],
    "label": "Phone",
    "labels": ["team=web"],
    "link_type": "other",
    "matchers": "service=web",
    "name": "Recorded",
    "namespace": "other",
    "namespace_id": "acme",
    "other_ends_at": "2031-03-08T09:00:00Z",
    "other_starts_at": "2031-03-07T09:00:00Z",
    "other_user": "max",
    "path": "recorded",
    "payload": _SAMPLE,
    "position": 1,
    "rotations": [{"type": "daily", "users": ["dora", "max"], "handover_time": "09:00"}],
    "redirect_uri": "https://b.example/callback",
    "ref": "main",
    "repeat_pause": "10m",
    "repeats": 1,
    "resolve_after_minutes": 30,
    "rule": "FREQ=WEEKLY",
    "sample": _SAMPLE,
    "scopes": ["read_api"],
    "services": ["web"],
    "severities": ["critical", "high"],
    "severity": "high",
    "sha": SHA,
    "since": "2031-03-01T00:00:00Z",
    "starts_at": "2031-03-05T09:00:00Z",
    "state": "success",
    "status": "acknowledged",
    "steps": _STEPS,
    "tag": False,
    "tag_name": "v2",
    "target_url": "https://ci.a.example/1",
    "time_zone": "Europe/Berlin",
    "title": "Recorded",
    "type": "email",
    "until": _LATER,
    "url": "https://somewhere.invalid/",
    "user": "dora",
    "user_id": "{user_id}",
    "username": "stan",
    "visibility": "internal",
}
#: Other values of fields, by the first part of the URL, page or command in which they apply.
ELSEWHERE: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("/application/settings", {"release": "17.3", "page_size": 30}),
    ("/deployments", {"status": "success"}),
    ("/incidents", {"status": "resolved", "assignees": ["dora"]}),
    ("/maintenance_windows", {"starts_at": "2031-03-05T09:00"}),
    ("/alert_management_integrations", {"type": "http"}),
    ("/users", {"username": "newcomer", "password": "another long passphrase 12"}),
    ("/releases/check", {"name": "script.sh"}),
    ("/projects/", {"path": "recorded"}),
    ("/transfer", {"group_id": None}),
)
#: Invalid values; each field gets them in turn.
BAD: Final = ("\u2603 nonsense", -1, None, ["x"], {"a": 1})
BAD_OF_FORMS: Final = ("", "\u2603 nonsense")
#: Other values in forms.
IN_FORMS: Final = {
    "current_password": "{password}",
    "ends_at": "2031-03-06T09:00",
    "login": "olga",
    "matchers": "service=web",
    "new_password": "another long passphrase 12",
    "password": "{password}",
    "redirect_uris": "https://b.example/callback",
    "repeat_password": "another long passphrase 12",
    "starts_at": "2031-03-05T09:00",
    "user_code": "BCDF-GHJK",
    "users": "dora",
}
#: Fields that are left out of valid bodies: they exclude others, or no value exists.
LEFT_OUT: Final = {
    *("cron", "assignee_id", "assignee_ids", "member_role_id", "pipeline_id", "position"),
    *("filter", "cursor", "parent_id", "after", "key_id", "assets", "coverage", "quiet_hours"),
    *("ci_job_token_scope_enabled", "previous_secret_expires_at", "previous_key_expires_at"),
}

#: Arguments and options of commands, by the names of their parameters.
WORDS: Final[dict[str, str]] = {
    "address": "someone@a.example",
    "alerts": "3",
    "application_id": "{client_id}",
    "applications_to": "max",
    "base": "guest",
    "days": "7",
    "delivery_id": "1",
    "directory": "{folder}",
    "display_name": "Somebody",
    "duration": "3h",
    "events": "alert.opened",
    "file": "{sample_file}",
    "files": "{sample_file}",
    "former": "acme/former",
    "group": "acme",
    "handover": "at-once",
    "labels": "team=web",
    "length": "3h",
    "login": "olga",
    "matchers": "service=web",
    "namespace": "{project_path}",
    "owner": "olga",
    "parent": "other",
    "permissions": "read_alerts",
    "policy": "{policy_id}",
    "project": "{project_path}",
    "project-or-group": "{project_path}",
    "redirect_uris": "https://b.example/callback",
    "release": "17.3",
    "role": "developer",
    "rotations": "daily 09:00 dora,max",
    "route": "{route_id}",
    "schedule": "{schedule_id}",
    "segment": "recorded",
    "scopes": "read_api",
    "search": "disk",
    "shell": "bash",
    "starts": "2031-03-05T09:00",
    "steps": "0s user:dora",
    "user": "dora",
    "value": "30",
}
#: Commands that would stop the recording, write outside of the database, or contact other hosts.
COMMANDS_LEFT_OUT: Final = (
    *("backup", "restore", "repositories", "doctor", "secrets", "registry certificates"),
    *("users reset-password", "mail test"),
)


def good_value(name: str, where: str) -> Any:
    """Return a valid value of a field, or None if none is known."""
    for part, values in ELSEWHERE:
        if part in where and name in values:
            return values[name]
    return GOOD.get(name)


def good_word(name: str, where: str) -> str | None:
    """Return a valid value as a text, or None if none is known."""
    found = good_value(name, where)
    if isinstance(found, list):
        return " ".join(each if isinstance(each, str) else json.dumps(each) for each in found)
    return None if found is None or isinstance(found, bool) else str(found)


def good_field(name: str, where: str) -> str | None:
    """Return a valid value of a form field, or None if none is known."""
    return IN_FORMS.get(name) or good_word(name, where)
