"""Postgres goes away at each moment of a page: its visitor may try again soon."""

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
#: Two pages that say 404: no view has the address of the first, so that it asks only then who is
#: signed in.
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
    """Give what ends all connections of a database; none are allowed until the block ends."""
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
    """Do something the first time that SQLAlchemy comes to a moment of this name."""
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
    """Let each backend end itself in the middle of a statement with this word."""
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
    """Give the lines of the log that are written meanwhile, but those of answered requests."""
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
def test_a_page_that_postgres_leaves_at_any_moment_may_be_asked_for_again(
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
def test_a_page_whose_statement_is_ended_may_be_asked_for_again(
    live: LiveGatebell, browser: requests.Session, path: str
) -> None:
    url, usual = live.url + path, browser.get(live.url + path).status_code
    with new_lines(live) as lines, dying_in(engine_of(live), "sign_ins"):
        answer = browser.get(url)
    assert_may_try_again(answer, lines)
    assert browser.get(url).status_code == usual


@pytest.mark.spec("I1")
def test_what_is_refused_needs_no_connection_to_be_rolled_back(
    live: LiveGatebell, postgres: Postgres, browser: requests.Session
) -> None:
    with (
        new_lines(live) as lines,
        outage(postgres, live) as begin,
        at(engine_of(live), "rollback", begin),
    ):
        answer = browser.get(live.url + HIDDEN)
    assert (answer.status_code, lines) == (404, [])
