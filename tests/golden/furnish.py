"""Creates users in a world, and one object of each kind in three projects."""

import json
import re
from typing import Any

from tests.golden.world import NOW, OFF, OLD, PASSWORD, PROJECTS, REGISTRY_SECRET, SHA, World

#: Roles of the members of the group, as numbers of the API.
MEMBERS = {"max": 40, "dora": 30, "rita": 20, "gus": 10}
PEOPLE = ("root", "olga", *MEMBERS, "stan")
#: Scopes of each user's token; an administrator's token also has `admin_mode`.
SCOPES = "api"
NARROW = ("read_user", "read_api", "write_alerts")
_PARTS = ("releases", "environments", "monitor", "infrastructure", "feature_flags")


class Furnisher:
    """Creates users and objects with commands and the API of the checkout."""

    def __init__(self, world: World) -> None:
        self._world = world

    def furnish(self) -> None:
        world = self._world
        for name in PEOPLE:
            rights = ("--admin",) if name == "root" else ()
            account = ("users", "create", name, "--email", f"{name}@a.example", "--verified")
            self._command(*account, "--password-stdin", *rights, stdin=f"{PASSWORD}\n")
            scopes = f"{SCOPES} admin_mode" if name == "root" else SCOPES
            world.tokens[name] = self._token(name, scopes)
        for scope in NARROW:
            world.tokens[scope] = self._token("olga", scope)
        world.api("olga", "POST", "/groups", {"path": "acme", "name": "acme"})
        world.api("olga", "POST", "/groups", {"path": "other", "name": "other"})
        for name, level in MEMBERS.items():
            member = {"username": name, "access_level": level}
            world.api("olga", "POST", "/groups/acme/members", member)
        self._instance()
        for path in PROJECTS:
            self._project(path)
        old, off = (self._of(path) for path in (OLD, OFF))
        world.api("olga", "POST", f"{old}/archive")
        world.api("olga", "PUT", off, {f"{part}_access_level": "disabled" for part in _PARTS})
        for name in PEOPLE:
            world.cookies[name] = world.sign_in(name)

    def _command(self, *words: str, stdin: str = "") -> dict[str, Any]:
        done = self._world.run(*words, stdin=stdin)
        if done.exit_code:
            message = f"gatebell {' '.join(words)}: {done.output}"
            raise RuntimeError(message)
        made: dict[str, Any] = json.loads(done.stdout)
        return made

    def _token(self, name: str, scopes: str) -> str:
        words = ("tokens", "create", name, "--name", "recorded", "--scopes", scopes)
        return str(self._command(*words)["token"])

    @staticmethod
    def _of(path: str) -> str:
        return f"/projects/{path.replace('/', '%2F')}"

    def _instance(self) -> None:
        """Create everything that belongs to no project."""
        world = self._world
        application = {
            "name": "Board",
            "redirect_uri": "https://a.example/callback",
            "scopes": "api read_user openid profile email offline_access",
        }
        mine = self._command(
            *("applications", "create", "Board", "--owner", "olga", "--redirect-uri"),
            *(application["redirect_uri"], "--scopes", application["scopes"]),
        )
        world.api("root", "POST", "/applications", application)
        stream = {"url": "https://audit.invalid/"}
        role = {"name": "Watcher", "base_access_level": 10, "read_alerts": True}
        registered = world.send(
            "POST", "/oauth/register", json={"redirect_uris": [application["redirect_uri"]]}
        ).get_json()
        contact = {"type": "email", "address": "olga.private@a.example"}
        self._shared = {
            "client_id": mine["application_id"],
            "client_secret": mine["secret"],
            "uid": registered["client_id"],
            "registration_token": registered["registration_access_token"],
            "stream_id": str(world.api("root", "POST", "/audit_streams", stream)["id"]),
            "role_id": str(world.api("root", "POST", "/member_roles", role)["id"]),
            "contact_id": str(world.api("olga", "POST", "/user/contacts", contact)["id"]),
            "application_id": "1",
            "user_id": str(world.api("dora", "GET", "/user")["id"]),
        }

    def _project(self, path: str) -> None:
        world, at = self._world, self._of(path)
        group = str(world.api("olga", "GET", "/groups/acme")["id"])
        name = path.rpartition("/")[2]
        made = {"path": name, "name": name, "namespace_id": group}
        project = world.api("olga", "POST", "/projects", made)
        things = {
            **self._shared,
            "project_path": path,
            "project_id": str(project["id"]),
            "group_path": "acme",
            "full_path": path,
            "path": path,
            "repository": path,
            "sha": SHA,
            "username": "dora",
            "user": "dora",
            "email": "new@a.example",
            "iid": "1",
            "alert_iid": "1",
            "member_id": self._shared["user_id"],
        }
        for word, ending, body in _THINGS:
            filled = json.loads(_filled(json.dumps(body), things))
            answer = world.api("olga", "POST", _filled(f"{at}/{ending}", things), filled)
            if word:
                things[word] = str(answer["id"])
        things["tag_name"] = "v1"
        self._integrations(path, at, things)
        world.things[path] = things

    def _integrations(self, path: str, at: str, things: dict[str, str]) -> None:
        """Create integrations, and send them alerts."""
        world = self._world
        for kind in ("prometheus", "http"):
            words = ("integrations", "create", path, "--type", kind, "--name", kind)
            made = self._command(*words)
            things["integration_key"] = made["key"]
            things["receiver"] = re.sub("^https?://[^/]+", "", made["url"])
        listed = world.api("olga", "GET", f"{at}/alert_management_integrations")
        things["integration_id"] = str(max(each["id"] for each in listed))
        *_, slug, identifier = things["receiver"].removesuffix(".json").split("/")
        things |= {"slug": slug, "endpoint_identifier": identifier}
        headers = {"Authorization": f"Bearer {things['integration_key']}"}
        for number, severity in enumerate(("critical", "low", "high"), start=1):
            labels = {"environment": "production", "service": "web", "severity": severity}
            alert = {"title": f"Alert {number}", "description": "Disk is full.", **labels}
            world.send("POST", things["receiver"], json=alert, headers=headers)
        incident = {"title": "Shop is slow", "alerts": [2], "severity": "high"}
        world.api("olga", "POST", f"{at}/incidents", incident)
        note = world.api("olga", "POST", f"{at}/incidents/1/notes", {"body": "Looking."})
        world.api("olga", "POST", f"{at}/alert_management_alerts/1/notes", {"body": "Again."})
        url = world.api("olga", "GET", f"{at}/heartbeats/{things['heartbeat_id']}/url")
        things["key"] = str(next(iter(re.findall(r"/-/ping/([^/\"]+)", json.dumps(url)))))
        world.send("POST", f"/-/ping/{things['key']}")
        pushed = {
            "action": "push",
            "target": {
                "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
                "size": 400,
                "length": 400,
                "digest": "sha256:" + "a" * 64,
                "repository": path,
                "tag": "v1",
            },
            "id": f"event {path}",
            "timestamp": NOW.isoformat().replace("+00:00", "Z"),
            "actor": {"name": "olga"},
            "request": {"id": "r", "method": "PUT"},
        }
        world.send(
            "POST",
            "/api/v4/container_registry_event/events",
            data=json.dumps({"events": [pushed]}),
            headers={
                "Authorization": f"Bearer {REGISTRY_SECRET}",
                "Content-Type": "application/vnd.docker.distribution.events.v1+json",
            },
        )
        things |= {"note_id": str(note["id"]), "repository_id": things["project_id"]}


def _filled(text: str, things: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: things[found[1]], text)


_STEPS = [{"targets": [{"type": "user", "id": "{user_id}"}], "wait": "5m"}]
_ROTATION = {
    "name": "weekly",
    "starts_at": "2031-03-01T09:00:00Z",
    "length": "weekly",
    "members": ["dora", "max"],
    "participants": ["dora", "max"],
}
#: URL variable of an object, the path that creates it, and the request body.
_THINGS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("environment_id", "environments", {"name": "production"}),
    (
        "deployment_id",
        "deployments",
        {"environment": "production", "sha": SHA, "ref": "main", "tag": False, "status": "running"},
    ),
    ("", f"statuses/{SHA}", {"state": "running", "name": "build"}),
    ("", "releases", {"tag_name": "v1", "name": "v1", "ref": "main"}),
    ("link_id", "releases/v1/assets/links", {"name": "l", "url": "https://a.example/l"}),
    ("token_id", "access_tokens", {"name": "bot", "scopes": ["api"], "access_level": 30}),
    ("webhook_id", "webhooks", {"url": "https://hooks.invalid/", "events": ["alert.opened"]}),
    ("silence_id", "silences", {"matchers": "service=mail", "duration": "2h", "comment": "Move"}),
    (
        "window_id",
        "maintenance_windows",
        {"name": "upgrade", "starts_at": "2031-04-01T02:00", "duration": "2h"},
    ),
    ("heartbeat_id", "heartbeats", {"name": "backup", "every": "1h", "grace": "5m"}),
    ("policy_id", "escalation_policies", {"name": "nights", "steps": _STEPS}),
    ("route_id", "alert_routes", {"name": "all", "escalation_policy_id": "{policy_id}"}),
    ("channel_id", "notification_channels", {"type": "email", "address": "team@a.example"}),
    ("rule_id", "incident_rules", {"name": "critical", "severities": ["critical"]}),
    ("schedule_id", "on_call/schedules", {"name": "primary", "time_zone": "Europe/Berlin"}),
    (
        "override_id",
        "on_call/schedules/{schedule_id}/overrides",
        {"user": "dora", "starts_at": "2031-03-04T09:00:00Z", "ends_at": "2031-03-05T09:00:00Z"},
    ),
)
