"""A service with objects of all kinds, for requests that are generated from its description."""

from dataclasses import dataclass, field
from typing import Any

import requests

from tests.support.accounts.administration import find_user_id
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    make_application,
    make_project,
    make_user,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.alerts.heartbeats import heartbeat
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell

#: No limits, since thousands of requests come from one address and one user.
UNLIMITED = "100000000/minute"
REGISTRY_SECRET = "the-secret-of-notifications-of-the-registry"
SETTINGS = {
    "REGISTRY_URL": "http://registry.example:5000",
    "REGISTRY_NOTIFICATION_SECRETS": REGISTRY_SECRET,
    "API_RATE_LIMIT": UNLIMITED,
    "ALERT_RATE_LIMIT": UNLIMITED,
    "EVENTS_ADDRESS_RATE_LIMIT": UNLIMITED,
    "HEARTBEAT_RATE_LIMIT": UNLIMITED,
    "HEARTBEAT_ADDRESS_RATE_LIMIT": UNLIMITED,
    "CLIENT_REGISTRATION_RATE_LIMIT": UNLIMITED,
    "DYNAMIC_CLIENT_REGISTRATION": "true",
    "OPEN_CLIENT_REGISTRATION": "true",
    "OAUTH2_DEVICE_GRANT_FLOW": "true",
}
SHA = "4f2c1d6b8e9a0c3d5e7f9a1b2c3d4e5f60718293"
_COPIES = 12


@dataclass(frozen=True, kw_only=True)
class DescribedInstance:
    """Objects in the service, and credentials of the user who sends the requests."""

    url: str
    #: ID of the administrator who sends the requests.
    user_id: int
    #: Personal access token of the administrator, and its id.
    token: str = field(repr=False)
    token_id: int
    #: Token with the scopes of the container registry.
    registry_token: str = field(repr=False)
    #: Access token of an application.
    oauth_token: str = field(repr=False)
    application: ClientCredentials
    #: Client that registered itself.
    registered: dict[str, Any] = field(repr=False)
    #: Full path of the project with all objects.
    project: str
    #: IDs of objects that are changed, and of objects that are deleted.
    changed: dict[str, int]
    deleted: dict[str, int]
    generic: Endpoint
    metrics: Endpoint
    #: Secret part of the URL of a heartbeat.
    ping_key: str = field(repr=False)


def furnish(gatebell: LiveGatebell) -> DescribedInstance:
    """Create objects of all kinds in a running service."""
    for _ in range(_COPIES):
        make_user(gatebell, name="somebody")
    person = make_user(gatebell, name="root", admin=True)
    project = make_project(gatebell, person)
    application = make_application(gatebell, person, scopes="api read_user openid profile email")
    for _ in range(_COPIES):
        make_token(gatebell, person, name="another")
    token = make_token(gatebell, person)
    made = DescribedInstance(
        url=gatebell.url,
        user_id=find_user_id(gatebell, person),
        token=token.clear,
        token_id=token.id,
        registry_token=make_token(gatebell, person, scopes="read_registry write_registry").clear,
        oauth_token=_oauth_token(gatebell, person, application),
        application=application,
        registered=_registered(gatebell),
        project=project,
        changed=_namespaces(gatebell, make_project(gatebell, person), token.clear),
        deleted=_namespaces(gatebell, make_project(gatebell, person), token.clear),
        generic=connect(gatebell, project),
        metrics=connect(gatebell, project, kind="prometheus"),
        ping_key=_ping_key(gatebell, project),
    )
    _fill(gatebell.http(), made)
    return made


def _ping_key(gatebell: LiveGatebell, project: str) -> str:
    """Create heartbeats and return the key of the last one, which no request deletes."""
    for _ in range(_COPIES):
        heartbeat(gatebell, project=project)
    return heartbeat(gatebell, project=project).url.rpartition("/")[2]


def _namespaces(gatebell: LiveGatebell, project: str, token: str) -> dict[str, int]:
    """Return the ids of a project and of its group."""
    paths = {"projects": project.replace("/", "%2F"), "groups": project.partition("/")[0]}
    headers = {"PRIVATE-TOKEN": token}
    return {
        kind: gatebell.http()
        .get(f"{gatebell.url}/api/v4/{kind}/{path}", headers=headers)
        .json()["id"]
        for kind, path in paths.items()
    }


def _oauth_token(gatebell: LiveGatebell, person: Person, application: ClientCredentials) -> str:
    form = {
        "grant_type": "password",
        "username": person.username,
        "password": person.password,
        "scope": "api openid profile email",
        "client_id": application.client_id,
        "client_secret": application.secret,
    }
    answer = gatebell.http().post(f"{gatebell.url}/oauth/token", data=form)
    return str(answer.json()["access_token"])


def _registered(gatebell: LiveGatebell) -> dict[str, Any]:
    metadata = {"redirect_uris": ["https://client.example/callback"]}
    answer = gatebell.http().post(f"{gatebell.url}/oauth/register", json=metadata)
    found = answer.json()
    assert isinstance(found, dict), answer.text
    return found


def _fill(session: requests.Session, made: DescribedInstance) -> None:
    """Create the objects of the project."""
    session.headers["PRIVATE-TOKEN"] = made.token
    api = f"{made.url}/api/v4/projects/{made.project.replace('/', '%2F')}"
    for number in range(_COPIES):
        session.post(f"{api}/environments", json={"name": f"place {number}"})
        deployment = {"environment": "place 1", "sha": SHA, "ref": "main", "tag": False}
        session.post(f"{api}/deployments", json={**deployment, "status": "running"})
        session.post(f"{api}/statuses/{SHA}", json={"state": "running", "name": f"job {number}"})
        release = {"tag_name": f"v{number}", "name": f"v{number}", "ref": "main"}
        session.post(f"{api}/releases", json=release)
        session.post(f"{api}/access_tokens", json={"name": "bot", "scopes": ["api"]})
        webhook = {"url": "https://hooks.invalid/", "events": ["alert.opened"]}
        session.post(f"{api}/webhooks", json=webhook)
        session.post(f"{api}/silences", json={"matchers": "a=b", "duration": "2h"})
        window = {"name": "upgrade", "starts_at": "2030-01-01T02:00", "duration": "2h"}
        session.post(f"{api}/maintenance_windows", json={**window, "rule": "FREQ=WEEKLY"})
        steps = [{"targets": [{"type": "user", "id": made.user_id}]}]
        policy = {"name": f"policy {number}", "steps": steps}
        session.post(f"{api}/escalation_policies", json=policy)
        session.post(f"{api}/alert_routes", json={"name": f"route {number}"})
        channel = {"type": "email", "address": f"team{number}@example.org"}
        session.post(f"{api}/notification_channels", json=channel)
        contact = {"type": "email", "address": f"me{number}@example.org"}
        session.post(f"{made.url}/api/v4/user/contacts", json=contact)
        session.post(
            made.generic.url,
            json={"title": f"alert {number}"},
            headers={"Authorization": f"Bearer {made.generic.key}"},
        )
        incident = {"title": f"incident {number}", "alerts": [number + 1]}
        session.post(f"{api}/incidents", json=incident)
        session.post(f"{api}/incidents/1/notes", json={"body": f"comment {number}"})
        rule = {"name": f"rule {number}", "severities": ["critical"]}
        session.post(f"{api}/incident_rules", json=rule)
