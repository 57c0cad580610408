"""Requests every list of a service on a large database, and examines its queries.

The URLs come from the service's URL map. The query parameters come from the API description. For
pages, they come from their own links and forms. This way, no list is forgotten.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import unescape
from http import HTTPStatus
from statistics import median
from time import perf_counter
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
import pytest
from flask import Flask
from flask.testing import FlaskClient

from bench.scale.large import LargeDatabase, connect_to_database
from bench.scale.large_sqlite import explain_sqlite_query
from blueprints.accounts.sign_in.attempts import create_sign_in_and_redirect
from domain.accounts.sign_in.sessions import PASSWORD_METHODS, Authentication
from web.database.sqlite import DeadlineCursor, DeadlineSqliteConnection
from web.extensions import db
from web.http.transactions import allow_writes

_REPEATS = 3
#: Milliseconds below which a statement is not explained.
_SLOW_STATEMENT_MS = 3.0
#: Durations below or above which a request is sent only once.
_SHORT_REQUEST_MS, _LONG_REQUEST_MS = 50.0, 2_000.0
#: Number of rows above which a table counts as large.
MIN_LARGE_TABLE_ROWS = 5_000
#: Maximum number of variants of a URL: without a query, with parameters, and with links and choices
#: of its page.
MAX_VARIANTS = 40
#: Seconds for a URL after which no further variant is requested.
_MAX_URL_SECONDS = 60.0
_LINK_PATTERN = re.compile(r'href="([^"#]*\?[^"#]*)"')
_FORM_PATTERN = re.compile(r"<form([^>]*)>(.*?)</form>", re.DOTALL)
_SELECT_PATTERN = re.compile(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', re.DOTALL)
_OPTION_PATTERN = re.compile(r'<option[^>]*value="([^"]*)"')
_VARIABLE_PATTERN = re.compile(r"<(?:[^:<>]+:)?([a-z_]+)>")
#: Values for parameters with these names. Parameters with an enum use its values.
_PARAMETER_VALUES: Mapping[str, Sequence[str]] = {
    "search": ("disk", "4711", "person 77", "zebra"),
    "username": ("user-77",),
    "environment": ("production", "rare"),
    "service": ("service-7",),
    "assignee": ("-", "alice"),
    "page": ("2", "100"),
    "per_page": ("100",),
    "pagination": ("keyset",),
    "status": ("resolved", "triggered"),
    "severity": ("low",),
    "created_after": ("2026-01-01T00:00:00Z",),
    "created_before": ("2026-06-01T00:00:00Z",),
}
#: Paths that are skipped because they end something, write large files, or wait for others.
_SKIPPED_PATHS = ("/users/", "/logout", "/api/graphql", "/oauth/authorize", "/static", "/metrics")


@dataclass(frozen=True, kw_only=True)
class WalkedRequest:
    """A request and its cost."""

    rule: str
    address: str
    status: int
    milliseconds: float
    #: Number of rows that the slow statements read, and the number of statements.
    rows: int = 0
    statements: int = 0
    #: Duration and plan of the slowest statement.
    slowest_ms: float = 0
    plan: str = ""
    #: Large tables that are scanned completely, with their row counts.
    whole: Mapping[str, int] = field(default_factory=dict)
    statement: str = ""


@dataclass
class _SentStatement:
    query: str
    values: Any
    milliseconds: float


@contextmanager
def collect_statements() -> Iterator[list[_SentStatement]]:
    """Collect the statements that are sent to the database, with their durations."""
    found: list[_SentStatement] = []
    execute, execute_on_sqlite = psycopg.Cursor.execute, DeadlineCursor.execute
    work = DeadlineSqliteConnection.run_within_limit

    def note(cursor: Any, query: Any, values: Any = None, **more: Any) -> Any:
        began = perf_counter()
        try:
            return execute(cursor, query, values, **more)
        finally:
            found.append(_SentStatement(str(query), values, (perf_counter() - began) * 1000))

    def note_on_sqlite(cursor: Any, query: str, values: Any = ()) -> Any:
        found.append(_SentStatement(query, values, 0.0))
        return execute_on_sqlite(cursor, query, values)

    # SQLite searches most rows only when they are fetched.
    def add_time(connection: Any, doing: Any) -> Any:
        began = perf_counter()
        try:
            return work(connection, doing)
        finally:
            if found:
                found[-1].milliseconds += (perf_counter() - began) * 1000

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", note)
        patch.setattr(DeadlineCursor, "execute", note_on_sqlite)
        patch.setattr(DeadlineSqliteConnection, "run_within_limit", add_time)
        yield found


class PageWalk:
    """Requests pages of a service in this process, as an administrator of its projects."""

    def __init__(self, app: Flask, database: LargeDatabase, *, ways: int = MAX_VARIANTS) -> None:
        """Sign in."""
        self._app, self._database, self._ways = app, database, ways
        self._browser = _sign_in(app, database)
        self._api = app.test_client()
        self._values = _find_url_values(database)
        self._described = _list_query_parameters(self._api, database)

    def all(self) -> Iterator[WalkedRequest]:
        """Request every URL in each variant."""
        rules = {
            rule.rule
            for rule in self._app.url_map.iter_rules()
            if "GET" in (rule.methods or ()) and not rule.rule.startswith(_SKIPPED_PATHS)
        }
        for rule in sorted(rules):
            address = self._address(rule)
            if address is None:
                continue
            seen, began = {address}, perf_counter()
            first, text = self.ask(rule, address)
            yield first
            if first.status != HTTPStatus.OK:  # a missing page has no variants
                continue
            for variant in self._variants(rule, address, text):
                is_over = len(seen) >= self._ways or perf_counter() - began > _MAX_URL_SECONDS
                if variant not in seen and not is_over:
                    seen.add(variant)
                    yield self.ask(rule, variant)[0]

    def ask(self, rule: str, address: str) -> tuple[WalkedRequest, str]:
        """Send a request several times, and examine the statements of the last time."""
        client, headers = self._browser, {}
        if rule.startswith(("/api/", "/oauth/")):
            client, headers = self._api, {"PRIVATE-TOKEN": self._database.token}
        times: list[float] = []
        text, status, last = "", 0, list[_SentStatement]()
        while len(times) < _REPEATS:
            with collect_statements() as sent:
                began = perf_counter()
                answer = client.get(address, headers=headers)
                text = answer.get_data(as_text=True) if answer.mimetype != "image/png" else ""
                status, last = answer.status_code, sent
                answer.close()
                times.append((perf_counter() - began) * 1000)
            if not _SHORT_REQUEST_MS < times[-1] < _LONG_REQUEST_MS or status != HTTPStatus.OK:
                break
        found = WalkedRequest(
            rule=rule,
            address=address,
            status=status,
            milliseconds=median(times),
            statements=len(last),
            **self.explain_slow_statements(last),
        )
        return found, text

    def explain_slow_statements(self, sent: Sequence[_SentStatement]) -> dict[str, Any]:
        """Return how the database executes the slow statements."""
        timed = sorted(sent, key=lambda each: -each.milliseconds)
        slow = [
            each
            for each in timed
            if each.milliseconds > _SLOW_STATEMENT_MS and _is_reading_query(each.query)
        ][:4]
        found = {"slowest_ms": slow[0].milliseconds, "statement": slow[0].query} if slow else {}
        if self._database.url.startswith("sqlite"):
            plans = [
                explain_sqlite_query(self._database.url, each.query, each.values)
                for each in slow[:1]
            ]
            return found | {"plan": "".join(plans)}
        return found | self._explain_on_postgres(slow)

    def _explain_on_postgres(self, slow: Sequence[_SentStatement]) -> dict[str, Any]:
        """Return what Postgres reads for these statements."""
        whole: dict[str, int] = {}
        rows, plan = 0, ""
        for number, each in enumerate(slow):
            with connect_to_database(self._database.url) as connection, suppress(psycopg.Error):
                connection.execute("SET statement_timeout = '60s'")
                nodes = explain_query(connection, each.query, each.values)
                rows += sum(node.rows for node in nodes)
                for node in nodes:
                    if node.is_whole and node.rows > MIN_LARGE_TABLE_ROWS:
                        whole[node.table] = max(node.rows, whole.get(node.table, 0))
                if number == 0:
                    plan = format_summary(nodes)
        return {"rows": rows, "whole": whole, "plan": plan}

    def _address(self, rule: str) -> str | None:
        """Return a URL for the rule, or None if there is no stored object for it."""
        missing: list[str] = []

        def value(found: re.Match[str]) -> str:
            name = found[1]
            known = self._values.get(name)
            if name == "reference":
                known = quote("acme/large", safe="") if "/projects/" in rule else "acme"
                if "kind" in rule:
                    known = quote("acme/large", safe="")
                if "/environments/" in rule and "/api/" not in rule:
                    known = "production"
            if name in {"iid", "alert_iid"} and "/incidents/" in rule:
                known = self._values["incident_iid"]
            if known is None:
                missing.append(name)
            return str(known)

        address = re.sub(r"<any\(([a-z_]+)[^>]*>", lambda found: found[1], rule)
        address = _VARIABLE_PATTERN.sub(value, re.sub(r"\([^()]*\)", "", address))
        return None if missing or "<" in address else address

    def _variants(self, rule: str, address: str, text: str) -> Iterator[str]:
        shape = _TEMPLATE_VARIABLE_PATTERN.sub("{}", format_rule(rule))
        for name, values in self._described.get(shape, {}).items():
            for value in values:
                yield f"{address}?{urlencode({name: value})}"
        if not rule.startswith("/api/"):
            yield from _list_variants(address, text)


def _list_variants(address: str, text: str) -> Iterator[str]:
    """Yield the variants of a list that its page offers."""
    for link in _LINK_PATTERN.findall(text):
        path, _, query = unescape(link).partition("?")
        if path in {address, ""} and "_part" not in query:
            yield f"{address}?{query}"
    for attributes, inside in _FORM_PATTERN.findall(text):
        if 'method="post"' not in attributes:
            for name, value in _list_choices(inside):
                yield f"{address}?{urlencode({name: value})}"


def _list_choices(form: str) -> Iterator[tuple[str, str]]:
    for name, options in _SELECT_PATTERN.findall(form):
        yield from ((name, unescape(option)) for option in _OPTION_PATTERN.findall(options))
    for name in ("search", "username", "project", "subject", "user", "actor", "address"):
        if f'name="{name}"' in form:
            yield from ((name, word) for word in _PARAMETER_VALUES.get(name, ("user-77",)))


_TEMPLATE_VARIABLE_PATTERN = re.compile(r"\{[^}]*\}")


def format_rule(rule: str) -> str:
    """Return a rule in the format of the API description, with unnamed variables."""
    return re.sub(r"<[^>]*>", "{}", rule)


def _list_query_parameters(
    client: FlaskClient, database: LargeDatabase
) -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return the query parameters of each GET operation of the API, with values."""
    document = client.get("/api/openapi.json").get_json()
    found: dict[str, dict[str, Sequence[str]]] = {}
    for path, methods in document["paths"].items():
        shape = _TEMPLATE_VARIABLE_PATTERN.sub("{}", path)
        for kind in ("projects", "groups"):
            shape = shape.replace(f"/{kind}/", f"/{kind}/")
        known = found.setdefault(shape, {})
        for parameter in methods.get("get", {}).get("parameters", ()):
            if "$ref" in parameter:
                parameter = _resolve_reference(document, parameter["$ref"])  # noqa: PLW2901
            if parameter.get("in") == "query":
                known[parameter["name"]] = _choose_values(parameter, database)
    return found


def _resolve_reference(document: Any, reference: str) -> Any:
    for part in reference.removeprefix("#/").split("/"):
        document = document[part]
    return document


def _choose_values(parameter: Any, database: LargeDatabase) -> Sequence[str]:
    name, schema = parameter["name"], parameter.get("schema", {})
    schema = schema.get("items", schema)
    if choices := schema.get("enum"):
        return [str(each) for each in choices if each is not None]
    alice = database.ids["alice"]
    people = (str(alice), str(alice + 77))
    of_kind = {"boolean": ("true", "false"), "integer": ("1",)}.get(
        schema.get("type"), ("user-77",)
    )
    if schema.get("format") == "date-time":
        of_kind = ("2026-08-01T00:00:00Z",)
    return {"user_id": people, "author_id": people, **_PARAMETER_VALUES}.get(name, of_kind)


def _is_reading_query(query: str) -> bool:
    return query.lstrip("( \n").upper().startswith(("SELECT", "WITH"))


@dataclass(frozen=True, kw_only=True)
class PlanNode:
    """A scan or sort in a query plan."""

    table: str
    index: str
    #: Number of rows that were read, including filtered rows.
    rows: int
    is_whole: bool
    sorts: int = 0


def explain_query(
    connection: psycopg.Connection[Any], query: str, values: Any
) -> Sequence[PlanNode]:
    """Return the scans and sorts with which Postgres executes a query."""
    kind = psycopg.RawCursor if "$1" in query else psycopg.Cursor
    with connection.transaction(force_rollback=True):
        asked: Any = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {query}"
        row = kind(connection).execute(asked, values).fetchone()
    return tuple(_list_scans(row[0][0]["Plan"])) if row else ()


def _list_scans(plan: Any) -> Iterator[PlanNode]:
    kind = plan["Node Type"]
    loops = plan.get("Actual Loops", 1)
    if "Scan" in kind and ("Relation Name" in plan or "Index Name" in plan):
        passed = plan.get("Rows Removed by Filter", 0) + plan.get(
            "Rows Removed by Index Recheck", 0
        )
        yield PlanNode(
            table=plan.get("Relation Name", ""),
            index=plan.get("Index Name", ""),
            rows=int((plan.get("Actual Rows", 0) + passed) * loops),
            is_whole=kind in {"Seq Scan", "Parallel Seq Scan"},
        )
    elif kind in {"Sort", "Incremental Sort"}:
        below = plan["Plans"][0]
        yield PlanNode(
            table="",
            index="",
            rows=0,
            is_whole=False,
            sorts=int(below.get("Actual Rows", 0) * below.get("Actual Loops", 1)),
        )
    for each in plan.get("Plans", ()):
        yield from _list_scans(each)


def format_summary(nodes: Sequence[PlanNode]) -> str:
    """Return a summary of the scans and sorts with the most rows."""
    said = []
    for node in sorted(nodes, key=lambda each: -max(each.rows, each.sorts))[:3]:
        if node.sorts > MIN_LARGE_TABLE_ROWS:
            said.append(f"sort of {node.sorts:,} rows")
        elif node.is_whole and node.rows > MIN_LARGE_TABLE_ROWS:
            said.append(f"**full scan of `{node.table}`** ({node.rows:,})")
        elif node.index:
            said.append(f"`{node.index}` ({node.rows:,})")
    return ", ".join(dict.fromkeys(said))


def _find_url_values(database: LargeDatabase) -> dict[str, Any]:
    """Return the values for the variables of URLs."""
    ids = database.ids
    return {
        "project_path": "acme/large",
        "group_path": "acme",
        "full_path": "acme/large",
        "names": "acme",
        "kind": "projects",
        "iid": database.sizes.alerts,
        "incident_iid": database.sizes.alerts // 500,
        "integration_id": ids["large_integration"],
        "webhook_id": ids["endpoint"],
        "delivery_id": database.sizes.deliveries,
        "application_id": ids["application"],
        "user_id": ids["alice"],
        "policy_id": ids["policy"],
        "username": "alice",
        "environment_id": ids["environment"],
        "name": "production",
    }


def _sign_in(app: Flask, database: LargeDatabase) -> FlaskClient:
    """Return a client in which Alice is signed in, without a check of her password."""
    here = {"REMOTE_ADDR": "127.0.0.1", "HTTP_USER_AGENT": "bench"}
    client = app.test_client()
    client.environ_base = {**client.environ_base, **here}
    with app.test_request_context(base_url="http://localhost", environ_overrides=here):
        app.preprocess_request()
        allow_writes()
        proof = Authentication(user_id=database.ids["alice"], methods=PASSWORD_METHODS)
        answer = app.process_response(app.make_response(create_sign_in_and_redirect(proof)))
        db.session.remove()
    for line in answer.headers.getlist("Set-Cookie"):
        name, _, value = line.partition(";")[0].partition("=")
        client.set_cookie(name, value)
    return client
