"""Tests that the difference between a host's clock and the database's is measured and shown."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from flask import Flask
from sqlalchemy import select
from sqlalchemy.orm import Session

from app import create_app
from domain.core.clock import Clock, read_system_clock
from models import Host
from tests.support.service.live import close_app
from web.database.engine import open_engine
from web.jobs.host_heartbeat import report_host
from web.settings.environment import Settings

AHEAD = timedelta(seconds=7)


def fast_clock() -> datetime:
    return read_system_clock() + AHEAD


@pytest.fixture(params=[read_system_clock, fast_clock])
def clock(request: pytest.FixtureRequest) -> Clock:
    chosen: Clock = request.param
    return chosen


@pytest.fixture
def host(settings: Settings, clock: Clock) -> Iterator[Flask]:
    app = create_app(settings, clock=clock)
    yield app
    close_app(app)


def test_readiness_reports_the_clock_difference(
    host: Flask, clock: Clock, settings: Settings
) -> None:
    answer = host.test_client().get("/readyz")
    assert answer.status_code == 200
    assert answer.json is not None
    if clock is read_system_clock or settings.uses_sqlite:
        assert "clock" not in answer.json
    else:
        remark = answer.json["clock"]
        assert remark.startswith("The clock of this host is ")
        assert remark.endswith(" s ahead of the database's clock.")


def test_a_host_records_its_keys_and_clock_and_warns(
    settings: Settings, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="gatebell.clock"):
        report_host(replace(settings, secret_key_fallbacks=("k" * 32,)), "here web", clock=clock)
    engine = open_engine(settings)
    with Session(engine) as session:
        (host,) = session.scalars(select(Host))
        assert len(host.key_fingerprints.split()) == 2
        lead = host.clock_lead_ms
    engine.dispose()
    is_off = clock is fast_clock and not settings.uses_sqlite
    assert (lead is None) == settings.uses_sqlite
    assert is_off == (lead is not None and abs(lead - AHEAD / timedelta(milliseconds=1)) < 1_000)
    assert is_off == ("ahead of the database's" in caplog.text)
