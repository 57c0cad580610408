"""Stored rejections of token requests: few are kept, for a limited time."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from sqlalchemy.orm import Session

from domain.accounts.sign_in.sessions import RequestSource
from domain.housekeeping.pruning import Retention, prune_expired_rows
from domain.oauth.applications.rejected_requests import (
    MAX_REQUESTS_PER_REASON,
    REJECTED_REQUEST_RETENTION,
    find_rejected_requests,
    store_rejected_request,
)
from domain.oauth.clients.redirect_uris import redact_redirect_uri
from domain.oauth.context import NewRejectedRequest, OAuthContext
from domain.oauth.rejection_reasons import SCOPE_NOT_ALLOWED
from models import Application, User

pytestmark = pytest.mark.one_database("sqlite")

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
WRONG_SCOPE = NewRejectedRequest(
    application_id=1,
    request="authorization_code",
    error="invalid_scope",
    description="No such scope.",
    reason=SCOPE_NOT_ALLOWED,
    address="::1",
    redirect_uri=None,
)


@pytest.fixture(autouse=True)
def application(session: Session) -> None:
    bob = {"username": "bob", "email": "bob@example.org", "name": "Bob", "password_hash": ""}
    session.add(User(id=1, created_at=NOON, **bob))
    session.flush()
    app = {"uid": "a", "name": "App", "redirect_uris": [], "scopes": ""}
    session.add(Application(id=1, owner_id=1, created_at=NOON, **app))
    session.flush()


def refuse(session: Session, *, now: datetime = NOON, **source: str) -> None:
    context = SimpleNamespace(
        run_write=session.execute,
        now=now,
        source=RequestSource(address=None, user_agent=source.get("user_agent")),
    )
    store_rejected_request(WRONG_SCOPE, context=cast("OAuthContext", context))


def test_the_newest_rejections_of_a_reason_are_kept(session: Session) -> None:
    for minute in range(MAX_REQUESTS_PER_REASON + 3):
        refuse(session, now=NOON + timedelta(minutes=minute))
    kept = find_rejected_requests(1, session=session)
    assert [each.refused_at.minute for each in kept] == list(
        range(MAX_REQUESTS_PER_REASON + 2, 2, -1)
    )
    assert {each.reason for each in kept} == {SCOPE_NOT_ALLOWED.name}


def test_any_user_agent_can_be_stored(session: Session) -> None:
    refuse(session, user_agent="x" * 10_000)
    refuse(session)
    unnamed, named = find_rejected_requests(1, session=session)
    assert (named.ip_address, len(named.user_agent or "")) == ("::1", 255)
    assert unnamed.device == "an unknown device"


def test_rejections_are_removed_after_a_month(session: Session) -> None:
    refuse(session)
    refuse(session, now=NOON + timedelta(days=2))
    retention = Retention(keep_deliveries=1, keep_for=timedelta(days=1))
    now = NOON + REJECTED_REQUEST_RETENTION + timedelta(days=1)
    removed = prune_expired_rows(retention, session=session, now=now, commit_batch=session.flush)
    assert removed["token_refusals"] == 1
    assert len(find_rejected_requests(1, session=session)) == 1


@pytest.mark.parametrize(
    ("uri", "kept"),
    [
        ("https://a.example/cb", "https://a.example/cb"),
        (
            "https://u:secret@a.example/cb?next=secret&flag&state=#token=secret",
            "https://…@a.example/cb?next=…&flag&state=#…",
        ),
        ("com.example.app:/cb\n\0\u202e", "com.example.app:/cb???"),
        ("https://a.example/" + "x" * 100_000, "https://a.example/" + "x" * 482),
        ("#", "#…"),
    ],
)
def test_a_redirect_uri_is_stored_without_possible_secrets(uri: str, kept: str) -> None:
    assert redact_redirect_uri(uri) == kept
