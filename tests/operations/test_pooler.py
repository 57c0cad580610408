"""A pooler that gives connections to others after each transaction is refused at the start."""

from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from tests.operations.conftest import RunHere
from tests.support.database.postgres import Postgres
from tests.support.database.transaction_pooler import transaction_pooler
from tests.support.service.live import SECRET_KEY, LiveGatebell
from web.database.start_checks import CannotStartError, check_if_available, connections_are_shared
from web.settings.reader import read_settings


def test_a_pooler_of_transactions_is_refused_and_none_is_not(
    postgres: Postgres, migrated_postgres: str, tmp_path: Path, run_here: RunHere
) -> None:
    url = postgres.new_database(template=migrated_postgres)
    environment = {"INSTANCE_PATH": str(tmp_path), "SECRET_KEY": SECRET_KEY, "DATABASE_URL": url}
    assert not connections_are_shared(read_settings(environment))
    with psycopg.connect(url) as connection:
        info = connection.info
        socket, user, name = f"{info.host}/.s.PGSQL.{info.port}", info.user, info.dbname
    with transaction_pooler(socket, user, name) as port:
        pooled = make_url(url).set(host="127.0.0.1", port=port, query={})
        live = LiveGatebell(
            instance_path=tmp_path, database_url=pooled.render_as_string(hide_password=False)
        )
        # As the web server and the worker do; that they ask is shown by a wrong key.
        with pytest.raises(CannotStartError, match="a pooler shares connections"):
            check_if_available(read_settings(live.environment))
        done = run_here(live, "make run")
        assert done.returncode != 0
        assert "DATABASE_URL: a pooler shares connections" in done.stderr
        assert "Traceback" not in done.stderr
