"""Tests of the compression of long values in Postgres, such as bodies of alerts."""

from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import text

from web.database.engine import build_psycopg_url, open_autocommit_engine, open_engine
from web.database.sessions import set_session_defaults
from web.settings.environment import Settings

_OFFERED = "SELECT enumvals FROM pg_settings WHERE name = 'default_toast_compression'"
_CHOSEN = "SHOW default_toast_compression"


@pytest.mark.one_database("postgres")
def test_sessions_compress_with_lz4_if_the_server_supports_it(settings: Settings) -> None:
    address = build_psycopg_url(settings)
    with psycopg.connect(address) as connection:
        (offered,) = connection.execute(_OFFERED).fetchone() or ([],)
    expected = "lz4" if "lz4" in offered else "pglz"
    for opened in (open_engine(settings), open_autocommit_engine(settings)):
        with opened.connect() as session:
            assert session.scalar(text(_CHOSEN)) == expected
            session.rollback()
            assert session.scalar(text(_CHOSEN)) == expected
        opened.dispose()
    # Behind a transaction pooler, the role has this setting.
    owner = open_engine(settings)
    with owner.begin() as session:
        set_session_defaults(session, replace(settings, database_pooler="transaction"))
    owner.dispose()
    with psycopg.connect(address) as connection:
        assert connection.execute(_CHOSEN).fetchone() == (expected,)
