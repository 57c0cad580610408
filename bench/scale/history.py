"""Fills a database with the alerts and tokens of a long-running service."""

from pathlib import Path

from sqlalchemy import text

from app import create_app
from bench.alert_lists import insert_alerts, print_progress
from tests.support.service.live import SECRET_KEY, close_app
from web.extensions import db
from web.settings.environment import parse_settings

#: Minimum number of rows in every database.
MIN_ROWS = 10_000
_ROWS_PER_STATEMENT = 50_000
_TOKENS_STATEMENT = text(
    """
WITH grants AS (
  INSERT INTO authorizations (application_id, user_id, scopes, auth_time, code_expires_at,
    code_used_at, created_at)
  SELECT application.id, application.owner_id, 'read_user', moment, moment, moment, moment
  FROM (SELECT id, owner_id FROM applications ORDER BY id LIMIT 1) AS application,
    generate_series(1, CAST(:count AS int)) AS n,
    LATERAL (SELECT now() - n * interval '1 s' AS moment) AS clock
  RETURNING id, application_id, user_id, created_at
)
INSERT INTO access_tokens (authorization_id, application_id, user_id, digest, refresh_digest,
  scopes, created_at, expires_at)
SELECT id, application_id, user_id, sha256(convert_to('access ' || id, 'UTF8')),
  sha256(convert_to('refresh ' || id, 'UTF8')), 'read_user', created_at,
  created_at + interval '30 days'
FROM grants
"""
)
_NUMBERS_STATEMENT = text(
    """
SELECT setval(('alert_iids_' || project_id)::regclass, max(iid)) FROM alerts
WHERE to_regclass('alert_iids_' || project_id) IS NOT NULL GROUP BY project_id
"""
)


def store_history(directory: Path, database_url: str, rows: int) -> None:
    """Store alerts in the single project, and token pairs. Works only on Postgres."""
    settings = {
        "INSTANCE_PATH": str(directory),
        "DATABASE_URL": database_url,
        "SECRET_KEY": SECRET_KEY,
        "DATABASE_STATEMENT_TIMEOUT_MS": "600000",
    }
    app = create_app(parse_settings(settings))
    try:
        with app.app_context():
            insert_alerts(rows)
            db.session.execute(_NUMBERS_STATEMENT)
            _store_tokens(rows)
            db.session.commit()
            _vacuum()
    finally:
        close_app(app)
    print_progress(f"{rows:,} pairs of tokens stored")


def _store_tokens(rows: int) -> None:
    for stored in range(0, rows, _ROWS_PER_STATEMENT):
        db.session.execute(_TOKENS_STATEMENT, {"count": min(_ROWS_PER_STATEMENT, rows - stored)})


def _vacuum() -> None:
    with db.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        for table in ("authorizations", "access_tokens"):
            connection.execute(text(f"VACUUM ANALYZE {table}"))
