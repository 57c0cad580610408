"""Notifications in the format of Docker's registry."""

import itertools
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from typing import Any

import requests
import yaml

from tests.support.accounts.people import now
from tests.support.oauth.oauth_wire import machine
from tests.support.registry.images import CONFIG, LAYER, MANIFEST
from tests.support.service.live import LiveGatebell

MEDIA_TYPE = "application/vnd.docker.distribution.events.v1+json"
ADDRESS = "/api/v4/container_registry_event/events"
_ids = itertools.count(1)


def digest_of(content: str) -> str:
    return f"sha256:{sha256(content.encode()).hexdigest()}"


def _event(action: str, at: datetime | None, target: dict[str, Any]) -> dict[str, Any]:
    # Go writes times with nanoseconds.
    moment = (at or now()).isoformat().replace("+00:00", "123Z")
    return {
        "id": f"event-{next(_ids)}",
        "timestamp": moment,
        "action": action,
        "target": target,
        "request": {"id": "r", "addr": "127.0.0.1:1", "method": "PUT", "useragent": "skopeo"},
        "actor": {"name": "alice"},
        "source": {"addr": "registry:5000", "instanceID": "i"},
    }


def pushed(
    repository: str, tag: str = "v1", *, content: str = "a", at: datetime | None = None
) -> dict[str, Any]:
    """Return the event of a pushed image of 30 bytes."""
    target = {
        "mediaType": MANIFEST,
        "size": 400,
        "length": 400,
        "digest": digest_of(content),
        "repository": repository,
        "url": f"http://registry/v2/{repository}/manifests/{digest_of(content)}",
        "tag": tag,
        "references": [
            {"mediaType": CONFIG, "size": 10, "digest": digest_of(f"config of {content}")},
            {"mediaType": LAYER, "size": 20, "digest": digest_of(f"layer of {content}")},
        ],
    }
    return _event("push", at, {name: value for name, value in target.items() if value})


def deleted(
    repository: str, *, at: datetime | None = None, content: str = "", tag: str = ""
) -> dict[str, Any]:
    """Return the event of a deleted manifest, a deleted tag or a deleted repository."""
    target = {
        "repository": repository,
        "digest": digest_of(content) if content else "",
        "tag": tag,
    }
    return _event("delete", at, {name: value for name, value in target.items() if value})


@cache
def authorization(gatebell: LiveGatebell) -> str:
    """Return the Authorization header of the generated configuration."""
    ready = yaml.safe_load(gatebell.cli("registry", "configuration")["configuration"])
    header = ready["notifications"]["endpoints"][0]["headers"]["Authorization"][0]
    assert isinstance(header, str)
    return header


def notify(gatebell: LiveGatebell, *events: Any, **options: Any) -> requests.Response:
    """Send events in one envelope."""
    headers = {"Content-Type": MEDIA_TYPE, "Authorization": authorization(gatebell)}
    headers |= options.pop("headers", {})
    body = options.pop("json", {"events": list(events)})
    if "data" in options:
        body = None
    return machine(gatebell).post(
        f"{gatebell.url}{ADDRESS}", json=body, headers=headers, timeout=30, **options
    )


def seconds(number: float) -> datetime:
    """Return a time that is this number of seconds after an hour ago."""
    return now() - timedelta(hours=1) + timedelta(seconds=number)
