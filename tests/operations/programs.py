"""Helpers to run programs that end by themselves, in separate processes."""

import subprocess
import sys

from sqlalchemy import text

from tests.support.service.live import ROOT, Done, LiveGatebell
from web.database.engine import open_engine
from web.settings.environment import Settings

PROGRAMS = {
    "make run": ("-m", "web.server.serve"),
    "make migrate": ("-m", "web.server.migrate"),
    "gunicorn": ("-m", "gunicorn", "--config", "gunicorn.conf.py"),
    "worker": ("-m", "web.jobs.worker"),
}


def run(live: LiveGatebell, program: str, **variables: str) -> Done:
    """Run a program that ends by itself."""
    done = subprocess.run(
        [sys.executable, *PROGRAMS[program]],
        cwd=ROOT,
        env=live.environment | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def execute_statements(settings: Settings, *statements: str) -> None:
    """Execute statements in the database of a service."""
    engine = open_engine(settings)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()
