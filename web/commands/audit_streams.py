"""Commands about destinations of the audit log."""

from typing import Any

import click
from flask.cli import AppGroup

from domain.audit.streaming.destinations import StreamView, list_streams
from domain.grace_period import GracePeriod
from web.audit import streams
from web.commands.transaction import one_transaction
from web.extensions import db
from web.services import now

audit_streams = AppGroup("audit-streams", help="Destinations that get every audit event by HTTP.")


@audit_streams.command("create")
@click.option("--url", required=True, help="An https or http URL.")
@one_transaction
def create_command(*, url: str) -> dict[str, Any]:
    """Create a destination and print its secret, which is shown only once."""
    made = streams.create(url)
    return {"id": made.stream.id, "url": made.stream.url, "secret": made.secret}


@audit_streams.command("list")
@one_transaction
def list_command() -> dict[str, Any]:
    """List the destinations with the state of their delivery."""
    found = list_streams(session=db.session(), now=now())
    return {"audit_streams": [_as_json(each) for each in found]}


@audit_streams.command("show")
@click.argument("stream_id", type=int)
@one_transaction
def show_command(*, stream_id: int) -> dict[str, Any]:
    """Show a destination with the state of its delivery."""
    return _as_json(streams.get(stream_id))


@audit_streams.command("change")
@click.argument("stream_id", type=int)
@click.option("--url", required=True, help="An https or http URL.")
@one_transaction
def change_command(*, stream_id: int, url: str) -> dict[str, Any]:
    """Change the URL of a destination, also for waiting events."""
    return _as_json(streams.change_url(stream_id, url))


@audit_streams.command("rotate")
@click.argument("stream_id", type=int)
@click.option(
    "--overlap",
    type=click.Choice([each.key for each in GracePeriod]),
    default=GracePeriod.DAY.key,
    show_default=True,
    help="How long the old secret also signs.",
)
@one_transaction
def rotate_command(*, stream_id: int, overlap: str) -> dict[str, Any]:
    """Create a new secret and print it. It is shown only once."""
    made = streams.rotate(stream_id, previous_until=now() + GracePeriod.of(overlap).length)
    return {"id": made.stream.id, "url": made.stream.url, "secret": made.secret}


@audit_streams.command("pause")
@click.argument("stream_id", type=int)
@one_transaction
def pause_command(*, stream_id: int) -> dict[str, Any]:
    """Stop sending to a destination; its events wait."""
    return _as_json(streams.pause(stream_id))


@audit_streams.command("resume")
@click.argument("stream_id", type=int)
@one_transaction
def resume_command(*, stream_id: int) -> dict[str, Any]:
    """Resume a destination and send its waiting events."""
    return _as_json(streams.resume(stream_id))


@audit_streams.command("test")
@click.argument("stream_id", type=int)
@one_transaction
def test_command(*, stream_id: int) -> dict[str, Any]:
    """Send a test event and print the result."""
    result = streams.send_test(stream_id, None)
    return {
        "delivered": result.problem is None,
        "status": result.status,
        "error": result.problem,
        "duration_ms": result.milliseconds,
    }


@audit_streams.command("delete")
@click.argument("stream_id", type=int)
@one_transaction
def delete_command(*, stream_id: int) -> dict[str, Any]:
    """Delete a destination; events that are waiting for it are never sent."""
    removed = streams.remove(stream_id)
    return {"id": removed.id, "url": removed.url, "undelivered": removed.backlog}


def _as_json(stream: StreamView) -> dict[str, Any]:
    def moment(name: str) -> str | None:
        found = getattr(stream, name)
        return found.isoformat() if found else None

    return {
        "id": stream.id,
        "url": stream.url,
        "state": stream.state.value,
        "backlog": stream.backlog,
        "set_aside": stream.set_aside,
        "failures": stream.failures,
        "last_error": stream.last_error,
        "dropped": stream.dropped,
        **{
            name: moment(name)
            for name in ("oldest_event_at", "last_delivered_at", "failing_since", "next_try_at")
        },
    }
