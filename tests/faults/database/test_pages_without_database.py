"""Tests that a page can be retried after PostgreSQL disappears at any point of the request."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests
from psycopg.sql import SQL, Identifier, Literal
from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import make_url

from tests.support.accounts.people import make_user, signed_in
from tests.support.database.postgres import Postgres
from tests.support.service.live import LiveGatebell, NewService, running
from web.extensions import db

HOME, SIGN_IN = "/", "/users/sign_in"
#: Two paths with status 404. The first one has no view, so it reads the signed-in user only while
#: rendering the error page.
UNKNOWN, HIDDEN = "/-/nothing-here", "/nobody/nothing"
DIE = "SELECT pg_terminate_backend(pg_backend_pid())"
END = SQL("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = {}")


@pytest.fixture(scope="module")
def live(new_service: NewService) -> Iterator[LiveGatebell]:
    with running(new_service("postgres", only="app")) as made:
        yield made


@pytest.fixture(scope="module")
def browser(live: LiveGatebell) -> requests.Session:
    return signed_in(live, make_user(live))


@contextmanager
def outage(postgres: Postgres, live: LiveGatebell) -> Iterator[Callable[[], None]]:
    """Return a function that ends all connections of a database and rejects new ones."""
    name = make_url(live.database_url).database or ""
    allow = SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")

    def begin() -> None:
        postgres.execute(allow.format(Identifier(name), SQL("false")))
        postgres.execute(END.format(Literal(name)))

    yield begin
    postgres.execute(allow.format(Identifier(name), SQL("true")))


def engine_of(live: LiveGatebell) -> Engine:
    with live.app().app_context():
        return db.engine


@contextmanager
def at(engine: Engine, name: str, act: Callable[[], None]) -> Iterator[None]:
    """Call a function at the first SQLAlchemy event with this name."""
    done: list[str] = []

    def once(*_given: Any) -> None:
        if not done:
            done.append(name)
            act()

    event.listen(engine, name, once)
    try:
        yield
    finally:
        event.remove(engine, name, once)
    assert done, name


@contextmanager
def dying_in(engine: Engine, word: str) -> Iterator[None]:
    """Make each backend terminate itself during a statement with this word."""
    asked = []

    def changed(
        _connection: Connection, _cursor: Any, statement: str, parameters: Any, *_more: Any
    ) -> tuple[str, Any]:
        if word not in statement:
            return statement, parameters
        asked.append(statement)
        return DIE, ()

    event.listen(engine, "before_cursor_execute", changed, retval=True)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", changed)
    assert asked, word


@contextmanager
def new_lines(live: LiveGatebell) -> Iterator[list[str]]:
    """Yield new log lines, without the lines of answered requests."""
    before, found = len(live.log_text()), list[str]()
    yield found
    found += [
        line for line in live.log_text()[before:].splitlines() if '"level":"INFO"' not in line
    ]


def assert_may_try_again(answer: requests.Response, lines: list[str]) -> None:
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert "Service unavailable" in answer.text
    (line,) = lines
    assert '"event":"request.database_error"' in line
    assert "Traceback" not in line


@pytest.mark.spec("I1")
@pytest.mark.parametrize(
    ("moment", "path"),
    [
        ("begin", HOME),
        ("after_cursor_execute", HOME),
        ("commit", HOME),
        ("commit", SIGN_IN),
        ("begin", UNKNOWN),
        ("after_cursor_execute", UNKNOWN),
        ("commit", UNKNOWN),
    ],
)
def test_a_page_can_be_retried_if_postgres_disappears_at_any_moment(
    live: LiveGatebell, postgres: Postgres, browser: requests.Session, moment: str, path: str
) -> None:
    url, usual = live.url + path, browser.get(live.url + path).status_code
    with (
        new_lines(live) as lines,
        outage(postgres, live) as begin,
        at(engine_of(live), moment, begin),
    ):
        answer = browser.get(url)
    assert_may_try_again(answer, lines)
    assert browser.get(url).status_code == usual


@pytest.mark.long
@pytest.mark.spec("I1")
@pytest.mark.parametrize("path", [HOME, UNKNOWN])
def test_a_page_can_be_retried_if_its_statement_is_terminated(
    live: LiveGatebell, browser: requests.Session, path: str
) -> None:
    url, usual = live.url + path, browser.get(live.url + path).status_code
    with new_lines(live) as lines, dying_in(engine_of(live), "sign_ins"):
        answer = browser.get(url)
    assert_may_try_again(answer, lines)
    assert browser.get(url).status_code == usual


@pytest.mark.spec("I1")
def test_a_rejected_request_does_not_need_a_connection_for_its_rollback(
    live: LiveGatebell, postgres: Postgres, browser: requests.Session
) -> None:
    with (
        new_lines(live) as lines,
        outage(postgres, live) as begin,
        at(engine_of(live), "rollback", begin),
    ):
        answer = browser.get(live.url + HIDDEN)
    assert (answer.status_code, lines) == (404, [])
