"""The bodies of messages: what happened, and the alert or incident as it is then.

They have no names of users, so that deleting an account leaves nothing in logs of others.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.listing.queries import ROWS, row_of
from domain.alerts.matching.labels import AlertLabels
from domain.clock import written
from domain.outgoing.signing import Message, new_message_id
from domain.webhooks.events import TESTED
from models import Alert, Project

#: More labels, and more of a value, are left out.
_MOST_LABELS = 64
_LONGEST_LABEL = 1_000

_Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class MessageProject:
    """A project as messages name it."""

    id: int
    name: str
    path: str
    web_url: str

    def as_json(self) -> _Json:
        """Return its members."""
        return {
            "id": self.id,
            "name": self.name,
            "path_with_namespace": self.path,
            "web_url": self.web_url,
        }


def body_of(event: str, at: datetime, project: MessageProject, **about: _Json) -> str:
    """Return a message as JSON."""
    message = {
        "type": event,
        "timestamp": written(at),
        "data": {"project": project.as_json(), **about},
    }
    return orjson.dumps(message).decode()


def projects_of(
    ids: Iterable[int], *, base_url: str, session: Session
) -> Mapping[int, MessageProject]:
    """Return projects by id; those that are being deleted are left out."""
    rows = session.execute(
        select(Project.id, Project.name, Project.path).where(
            Project.id.in_(set(ids)), Project.deleted_at.is_(None)
        )
    )
    return {
        row.id: MessageProject(
            id=row.id, name=row.name, path=row.path, web_url=f"{base_url}/{row.path}"
        )
        for row in rows
    }


def alerts_of(
    labels: Mapping[int, AlertLabels], *, base_url: str, session: Session
) -> Mapping[int, _Json]:
    """Return the alerts that have these labels, by id, as messages show them."""
    rows = session.execute(ROWS.where(Alert.id.in_(labels))).all()
    return {row[0].id: _alert(row, labels[row[0].id], base_url) for row in rows}


def _alert(row: Any, labels: AlertLabels, base_url: str) -> _Json:
    found = row_of(row)
    return {
        "id": found.id,
        "iid": found.iid,
        "title": found.title,
        "description": row[0].description,
        "severity": found.severity,
        "status": found.status,
        "environment": found.environment,
        "service": found.service,
        "monitoring_tool": found.monitoring_tool,
        "hosts": list(found.hosts),
        "integration": found.integration_name,
        "events": found.events,
        "started_at": written(found.started_at),
        "ended_at": written(found.ended_at) if found.ended_at else None,
        "last_event_at": written(found.last_event_at),
        "labels": _bounded(labels.labels),
        "web_url": f"{base_url}/{found.project_path}/-/alerts/{found.iid}",
    }


def _bounded(labels: Mapping[str, str]) -> Mapping[str, str]:
    some = islice(sorted(labels.items()), _MOST_LABELS)
    return {name[:_LONGEST_LABEL]: value[:_LONGEST_LABEL] for name, value in some}


def message_of_test(project: MessageProject, *, now: datetime) -> Message:
    """Return a message that names the project and nothing else: it shows that it arrives."""
    return Message(id=f"msg_{new_message_id()}", body=body_of(TESTED, now, project).encode())
