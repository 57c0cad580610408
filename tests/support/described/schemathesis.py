"""Runs Schemathesis against all operations of a running service."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.described.instance import REGISTRY_SECRET, SHA, DescribedInstance
from tests.support.service.live import ROOT, Done

_PROGRAM = Path(sys.executable).parent / "schemathesis"
_TIMEOUT = 7200
_NUMBERED = (
    *("environment", "deployment", "integration", "link", "token", "user", "application", "event"),
    *("delivery", "role", "stream", "repository", "webhook", "heartbeat", "silence", "window"),
)
#: Operations that change a project or group itself.
_CHANGING = ("change", "archive", "unarchive")
#: Checks for URLs that another object shares, with other methods.
_OF_AMBIGUOUS_URLS = {
    "unsupported_method": {"enabled": False},
    "allow_header_conformance": {"enabled": False},
}


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Extent of the tests: the same requests each time, or random requests for a time."""

    phases: tuple[str, ...]
    examples: int
    #: Seed of random requests; None for the same requests each time.
    seed: int | None = None
    seconds: int | None = None


def run_schemathesis(made: DescribedInstance, budget: Budget, directory: Path) -> Done:
    """Send requests to every operation; the status is 0 if there are no findings."""
    configuration = directory / "schemathesis.toml"
    configuration.write_text(_toml(_configuration(made, budget)), encoding="utf-8")
    seed = () if budget.seed is None else ("--seed", str(budget.seed))
    limit = () if budget.seconds is None else ("--max-time", str(budget.seconds))
    asked = {name: getattr(made, name) for name in ("url", "token", "token_id", "user_id")}
    done = subprocess.run(
        [
            *(_PROGRAM, "--config-file", configuration, "run", f"{made.url}/api/openapi.json"),
            *("--no-color", "--phases", ",".join(budget.phases), *seed, *limit),
        ],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "GATEBELL_DESCRIBED": json.dumps(asked)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def _configuration(made: DescribedInstance, budget: Budget) -> dict[str, Any]:
    return {
        "hooks": "tests.support.described.hooks",
        "continue-on-failure": True,
        # A busy machine needs more time to respond and to generate requests.
        "request-timeout": 300.0,
        "suppress-health-check": ["all"],
        "warnings": False,
        "generation": {
            "deterministic": budget.seed is None,
            "max-examples": budget.examples,
            "database": "none",
        },
        "auth": {"openapi": _credentials(made)},
        "checks": {
            # Clients of GitLab need leniency: numbers may come as texts, empty texts count as
            # missing, and unknown fields are ignored. So the service accepts much that no schema
            # allows.
            "negative_data_rejection": {"enabled": False},
            # Values that a schema allows may be rejected for their content: a name that is taken, a
            # scope that is too broad, a date in the past.
            "positive_data_acceptance": {"enabled": False},
        },
        "parameters": {f"path.{name}": value for name, value in _things(made).items()},
        "operations": _exceptions(made),
    }


def _credentials(made: DescribedInstance) -> dict[str, dict[str, str]]:
    client, registered = made.application, made.registered
    return {
        "access_token": {"bearer": made.token},
        "private_token": {"api_key": made.token},
        "oauth_token": {"bearer": made.oauth_token},
        "client_credentials": {"username": client.client_id, "password": client.secret},
        "registration_access_token": {"bearer": registered["registration_access_token"]},
        "token_as_password": {"username": "any", "password": made.registry_token},
        "notification_secret": {"bearer": REGISTRY_SECRET},
        "integration_key": {"bearer": made.generic.key},
        "integration_key_as_password": {"username": "", "password": made.generic.key},
    }


def _things(made: DescribedInstance) -> dict[str, Any]:
    """Return existing objects for the variables of paths."""
    return {
        "id": made.project.replace("/", "%2F"),
        "project_path": made.project.replace("/", "%2F"),
        "slug": "hook",
        "key": made.ping_key,
        "endpoint_identifier": made.generic.url.rpartition("/")[2].removesuffix(".json"),
        "uid": made.registered["client_id"],
        "iid": 1,
        "tag_name": "v1",
        "sha": SHA,
        **{f"{each}_id": 1 for each in _NUMBERED},
    }


def _exceptions(made: DescribedInstance) -> list[dict[str, Any]]:
    group = made.project.partition("/")[0]
    return [
        {"include-path-regex": r"^/api/v4/groups/", "parameters": {"path.id": group}},
        *(
            {
                "include-operation-id": [f"{kind}.{each}" for each in words],
                "parameters": {"path.id": str(numbers[kind])},
            }
            for numbers, words in ((made.changed, _CHANGING), (made.deleted, ("delete",)))
            for kind in numbers
        ),
        {
            "include-operation-id": "receivers.metrics",
            "auth": {"basic": {"username": "", "password": made.metrics.key}},
        },
        {
            # Without a receiver, the URL belongs to a page.
            "include-tag": "Receivers",
            "checks": _OF_AMBIGUOUS_URLS,
        },
        {
            # Several objects below `<path:…>` share a URL.
            "include-path-regex": "/alert_management_alerts/status$|/releases/permalink/|/links$",
            "checks": _OF_AMBIGUOUS_URLS,
        },
    ]


def _toml(value: dict[str, Any]) -> str:
    """Write a configuration as inline tables, which are JSON except for the equals sign."""
    return "".join(f"{json.dumps(name)} = {_inline(each)}\n" for name, each in value.items())


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(name)} = {_inline(each)}" for name, each in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return json.dumps(value)
