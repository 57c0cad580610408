"""Reads the database of a running service."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

from sqlalchemy import Select, Update, func, select, update

from domain.alerts.handling.retention import resolve_stale_alerts
from domain.alerts.storing.lifecycle import Action
from models import Alert, Delivery, Integration, Occurrence, Project
from tests.support.accounts.people import database_of, now
from tests.support.service.live import LiveGatebell

Row = TypeVar("Row")


def list_stored_alerts(gatebell: LiveGatebell, project: str) -> Sequence[Alert]:
    """Return a project's alerts in the order of their numbers."""
    return _detached(
        gatebell,
        select(Alert)
        .join(Project, Project.id == Alert.project_id)
        .where(Project.path == project)
        .order_by(Alert.iid),
    )


def list_stored_deliveries(gatebell: LiveGatebell, project: str) -> Sequence[Delivery]:
    """Return a project's delivery log, oldest first."""
    return _detached(
        gatebell,
        select(Delivery)
        .join(Project, Project.id == Delivery.project_id)
        .where(Project.path == project)
        .order_by(Delivery.id),
    )


def get_newest_delivery(gatebell: LiveGatebell, project: str) -> Delivery:
    """Return the last delivery of a project."""
    (newest,) = _detached(
        gatebell,
        select(Delivery)
        .join(Project, Project.id == Delivery.project_id)
        .where(Project.path == project)
        .order_by(Delivery.id.desc())
        .limit(1),
    )
    return newest


def list_stored_occurrences(gatebell: LiveGatebell, project: str) -> list[tuple[int, int, Action]]:
    """Return the alert and the action of each item, in the order of deliveries."""
    actions = tuple(Action)
    statement = (
        select(Alert.iid, Occurrence.item_index, Occurrence.action, Occurrence.is_late)
        .join(Alert, Alert.id == Occurrence.alert_id)
        .join(Project, Project.id == Alert.project_id)
        .where(Project.path == project)
        .order_by(Occurrence.delivery_id, Occurrence.item_index)
    )
    with database_of(gatebell) as session:
        return [
            (iid, index, Action.LATE if is_late else actions[rank])
            for iid, index, rank, is_late in session.execute(statement)
        ]


def count_reports(gatebell: LiveGatebell, delivery: Delivery) -> int:
    """Return the number of items of a delivery that are reports of alerts."""
    counted = select(func.count()).where(Occurrence.delivery_id == delivery.id)
    with database_of(gatebell) as session:
        return session.scalar(counted) or 0


def list_stored_integrations(gatebell: LiveGatebell, project: str) -> Sequence[Integration]:
    """Return a project's integrations, oldest first."""
    return _detached(
        gatebell,
        select(Integration)
        .join(Project, Project.id == Integration.project_id)
        .where(Project.path == project)
        .order_by(Integration.id),
    )


def change(gatebell: LiveGatebell, statement: Update) -> None:
    """Change rows in a way that no page allows."""
    with database_of(gatebell) as session:
        session.execute(statement)


def resolve_for_silence(gatebell: LiveGatebell, integration_id: int, *, minutes: int) -> None:
    """Resolve an integration's alerts because they were not reported again.

    The last report is moved back instead of moving the clock forward: no web server has marked that
    it receives requests in the future, and time without a receiving server does not count. The
    worker of the service only sees the alerts after they are resolved.
    """
    last_event_at = now() - timedelta(minutes=minutes + 1)
    with database_of(gatebell) as session:
        session.get_one(Integration, integration_id).resolve_after_minutes = minutes
        session.execute(
            update(Alert)
            .where(Alert.integration_id == integration_id)
            .values(last_event_at=last_event_at)
        )
        resolve_stale_alerts(session=session, now=now(), between=session.flush)


def _detached(gatebell: LiveGatebell, statement: Select[Row]) -> Sequence[Row]:
    with database_of(gatebell) as session:
        found = session.scalars(statement).all()
        session.expunge_all()
        return found
