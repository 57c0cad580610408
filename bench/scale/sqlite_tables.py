"""The data of a large SQLite database. See `large_tables.py` for Postgres.

The columns and row counts are the same as for Postgres; only the expressions differ. Triggers fill
the search tables, daily counts and environments.
"""

from collections.abc import Sequence
from dataclasses import replace

from bench.scale.large_tables import DEPENDENT_TABLES, FOUNDATION_TABLES, LARGE_TABLES, LargeTable

_DAY = 86_400
_NUMBERS = (
    "(WITH RECURSIVE numbers (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers"
    " WHERE n < {last}) SELECT n FROM numbers)"
)


def _ago(seconds: str) -> str:
    """Return an SQL expression for the time `seconds` ago, in SQLAlchemy's format."""
    return f"strftime('%Y-%m-%d %H:%M:%f000', {{now}} - ({seconds}), 'unixepoch')"


_NOW = _ago("0")
#: Age of each alert in seconds, its project and its integration.
_AGE = f"""CASE WHEN a > {{old}} THEN {29.0 * _DAY} * ({{alerts}} - a) / {{newest}}
    ELSE {31.0 * _DAY} + {334.0 * _DAY} * ({{old}} - a) / {{old}} END"""
_PROJECT = """CASE WHEN a % 10 < 4 THEN {large} WHEN a > {old} AND a % 10 < 8 THEN {paging}
    WHEN a % 10 < 7 THEN {large} ELSE {first_small} + (a / 10) % {small} END"""
_INTEGRATION = """CASE WHEN p = {large} THEN {large_integration}
    WHEN p = {paging} THEN {paging_integration} ELSE {first_integration} + p - {first_small} END"""
_ALERTS_SELECT = f"SELECT *, {_AGE} AS age, {_PROJECT} AS p"
_ALERTS = f"""(SELECT *, {_INTEGRATION} AS i FROM ({_ALERTS_SELECT} FROM (SELECT n AS a
  FROM {_NUMBERS})))"""
_PAGED = f"{_ALERTS} WHERE p = {{paging}}"
_DELIVERIES = f"""(SELECT *, {_INTEGRATION} AS i FROM ({_ALERTS_SELECT} FROM (SELECT n AS d,
  CASE WHEN n > {{old}} THEN {{old}} + (n - {{old}} - 1) / {{reports}} + 1 ELSE n END AS a,
  CASE WHEN n > {{old}} THEN (n - {{old}} - 1) % {{reports}} ELSE 0 END AS nth FROM {_NUMBERS})))"""
_OPENING = "CASE WHEN a > {old} THEN {old} + {reports} * (a - {old} - 1) + 1 ELSE a END"
_STATUS = """CASE WHEN a % 100 = 0 THEN 'triggered' WHEN a % 500 = 1 THEN 'acknowledged'
    WHEN a % 50 = 2 THEN 'ignored' ELSE 'resolved' END"""


def _build_spread_age(days: int) -> str:
    """Return an SQL expression for the age in seconds, which decreases from `days` days to 0."""
    return f"{days * _DAY}.0 * ({{last}} - n) / {{last}}"


_YEAR, _MONTH, _WEEK = _build_spread_age(360), _build_spread_age(29), _build_spread_age(6)

_SELECTED = {
    "users": f"""'user-' || n, 'user-' || n || '@people.example',
  'Person ' || (n % 9973) || ' ' || n, '!', 0,
  CASE WHEN n % 5000 = 0 THEN 'pending' WHEN n % 500 = 0 THEN 'locked' ELSE 'active' END,
  'human', 0, {_ago("n * 60")}, {_ago(f"(n % 90) * {_DAY}")}, {_NOW},
  'user-' || n, 'user-' || n || '@people.example', 'person ' || (n % 9973) || ' ' || n
FROM {_NUMBERS}""",
    "groups": f"""'crowd-' || n, 'crowd-' || n, {_NOW}, 'crowd-' || n, 'crowd-' || n, 48
FROM {_NUMBERS}""",
    "projects": f"""g.id, 'service-' || n, g.path || '/service-' || n,
  CASE WHEN n % 10 = 0 THEN 'internal' ELSE 'private' END, {_NOW},
  g.path || '/service-' || n, 'service-' || n
FROM {_NUMBERS} JOIN groups AS g ON g.path = 'crowd-' || (1 + n % ({{small}} / 10))
WHERE true ORDER BY n""",
    "alert_counters": f"{{first_small}} + n - 1, 0 FROM {_NUMBERS}",
    "integrations": f"""{{first_small}} + n - 1, 'http', 'Intake', 1, substr(md5(n), 1, 16),
  sha256('key ' || n), '', {_NOW} FROM {_NUMBERS}""",
    "applications": f"""md5('application ' || n), {{first_user}} + n, 'App ' || n, '[]',
  'read_user', 1, 1, 0, {_NOW}, 'app ' || n FROM {_NUMBERS}""",
    "contacts": f"""{{first_user}} + n, 'email', 'Mail', 'x', 'x', 'x', {_NOW}, {_NOW}, 0, 0, 0
FROM {_NUMBERS}""",
    "page_recipients": f"{{first_user}} + n, 'UTC', 1, 1 FROM {_NUMBERS}",
    "incidents": f"""{{large}}, n, 'Disks full in rack ' || (n % 300), 'Free space is low.', n % 6,
  CASE WHEN n % 50 = 0 THEN 'triggered' WHEN n % 77 = 0 THEN 'acknowledged' ELSE 'resolved' END,
  {{alice}}, 'alice', 4, {_ago(_YEAR)}, {_NOW} FROM {_NUMBERS}""",
    "deliveries": f"""d, p, i, 'http', 0, {_ago("age - nth")},
  CASE WHEN d % 1000 = 7 THEN 422 ELSE 200 END, '192.0.2.' || (d % 250), 232, CAST(
    '{{{{"title": "Disk full on web-' || (a % 5000)
    || '", "description": "Free space is low. Rack r' || (a % 300)
    || '", "service": "service-' || (a % 40) || '", "monitoring_tool": "Nagios", '
    || '"hosts": "web-' || (a % 5000) || '", "severity": "high", "fingerprint": "' || a
    || '"}}}}' AS BLOB), nth = 0, nth > 0, 0, '[]', 0, 0, 0 FROM {_DELIVERIES}""",
    "alerts": f"""a, p, a, i, {_OPENING}, 0, sha256(a), {_STATUS}, a % 6,
  'Disk full on web-' || (a % 5000), 'Free space is low. Rack r' || (a % 300),
  'service-' || (a % 40), 'Nagios', 'web-' || (a % 5000),
  CASE WHEN a % 3 = 0 THEN 'production' WHEN a % 9973 = 1 THEN 'rare' END,
  CASE WHEN a > {{old}} THEN {{reports}} ELSE 1 + a % 97 END, {_ago("age")},
  CASE WHEN {_STATUS} = 'resolved' THEN {_ago("age - 3600")} END, {_ago("age - 60")},
  {_ago("age")} FROM {_ALERTS}""",
    "occurrences": f"a, d, 0, nth > 0, 0 FROM {_DELIVERIES}",
    "alert_notes": f"""a, {{first_user}} + a % 100, 'user-' || (a % 100), 'status', 'resolved',
  {_ago("age")} FROM {_ALERTS} WHERE a % 10 = 0""",
    "assignments": f"n * 100, {{first_user}} + n % 100 FROM {_NUMBERS}",
    "authorizations": f"""{{first_grant}} + n, CASE WHEN n % 2 = 0 THEN {{application}}
    ELSE {{first_application}} + n % {{applications}} END, {{first_user}} + n % {{users}},
  'read_user', 'https://client.example/callback', {_ago(_YEAR)}, sha256('code ' || n),
  {_ago(f"{_YEAR} - 600")}, {_ago(_YEAR)}, {_ago(_YEAR)} FROM {_NUMBERS}""",
    "access_tokens": f"""{{first_grant}} + n, CASE WHEN n % 2 = 0 THEN {{application}}
    ELSE {{first_application}} + n % {{applications}} END, {{first_user}} + n % {{users}},
  sha256('access ' || nth || ' ' || n), sha256('refresh ' || nth || ' ' || n), 'read_user',
  {_ago("age")}, {_ago("age - 7200")}, CASE WHEN nth = 0 THEN {_ago("age")} END,
  CASE WHEN nth = 0 THEN {_ago("age")} END
FROM (SELECT n, nth, CASE nth WHEN 1 THEN {_YEAR} ELSE {_MONTH} END AS age
  FROM {_NUMBERS}, (SELECT 0 AS nth UNION ALL SELECT 1))""",
    "personal_access_tokens": f"""CASE WHEN n % 100 = 0 THEN {{alice}}
    ELSE {{first_user}} + n % {{users}} END, 'Script ' || n, sha256('personal ' || n), 'read_api',
  {_ago(_YEAR)}, {_ago(f"{_YEAR} - {365 * _DAY}")}, CASE WHEN n % 3 = 0 THEN {_ago(_YEAR)} END,
  'script ' || n FROM {_NUMBERS}""",
    "members": f"""{{first_user}} + n, CASE WHEN n % 50 = 0 THEN {{large}}
    ELSE {{first_small}} + n % {{small}} END, 30, {_NOW} FROM {_NUMBERS}""",
    "sign_ins": f"""sha256('sign-in ' || n), {{first_user}} + n % {{users}}, {_NOW},
  {_ago(f"-3600 - (n % 14) * {_DAY}")}, '192.0.2.1', 'pwd', 1 FROM {_NUMBERS}""",
    "audit_seals": f"""n, {_ago(_YEAR)}, {_ago(_YEAR)}, 1000, sha256(n), sha256(n)
FROM {_NUMBERS}""",
    "audit_events": f"""{_ago(_YEAR)},
  CASE n % 4 WHEN 0 THEN 'sign_in.succeeded' WHEN 1 THEN 'sign_in.failed'
    WHEN 2 THEN 'user.changed' ELSE 'token.created' END,
  CASE WHEN n % 10 = 0 THEN {{alice}} ELSE {{first_user}} + n % {{users}} END,
  'user-' || (n % {{users}}),
  CASE WHEN n % 10 = 0 THEN {{alice}} ELSE {{first_user}} + n % {{users}} END,
  CASE WHEN n % 7 = 0 THEN {{large}} END, 'subject-' || (n % 5000), '{{{{}}}}',
  '192.0.2.' || (n % 250), md5(n), min(1 + n / 1000, {{last}} / 1000), sha256(n)
FROM {_NUMBERS}""",
    "escalations": f"""a, p, 'stopped', {{policy}}, 1, 1, {_ago("age")}, 1, {_ago("age")},
  {_ago("age - 3600")} FROM {_PAGED}""",
    "escalation_pages": f"""a, {{first_user}} + 1 + a % 100, 1, 1, {_ago("age")}, 'page ' || a,
  'accepted', p, {{policy}} FROM {_PAGED}""",
    "incident_alerts": f"""{{first_incident}} + n / 4, n * 10 + 10
FROM (SELECT n - 1 AS n FROM {_NUMBERS})""",
    "mails": f"""'mail ' || n, 'user-' || n || '@people.example', 'Sign-in',
  replace(hex(zeroblob(30)), '00', 'text '), {_ago(_MONTH)}, 1, {_ago(_MONTH)} FROM {_NUMBERS}""",
    "webhook_deliveries": f"""{{endpoint}}, {{large}}, md5(n), 'alert.opened',
  replace(hex(zeroblob(30)), '00', 'body '),
  CASE WHEN n % 100 = 0 THEN 'failed' ELSE 'delivered' END, {_ago(_WEEK)}, {_ago(_WEEK)}, 1,
  {_ago(_WEEK)}, 200 FROM {_NUMBERS}""",
    "deployments": f"""{{large}}, n, {{environment}}, md5(n), 'main', 0, 'success', {_ago(_YEAR)},
  {_ago(_YEAR)}, {_ago(_YEAR)} FROM {_NUMBERS}""",
}


def _convert_to_sqlite(tables: Sequence[LargeTable]) -> Sequence[LargeTable]:
    return tuple(
        replace(each, select=_SELECTED[each.name]) for each in tables if each.name in _SELECTED
    )


SQLITE_FOUNDATION_TABLES = _convert_to_sqlite(FOUNDATION_TABLES)
SQLITE_DEPENDENT_TABLES = _convert_to_sqlite(DEPENDENT_TABLES)
SQLITE_LARGE_TABLES = _convert_to_sqlite(LARGE_TABLES)
