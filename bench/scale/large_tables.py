"""The data of a large database: statements with which Postgres fills its own tables.

Rows depend only on their numbers, so that equal sizes give equal rows; only their times are
relative to now. Nine tenths of the alerts are older than `DELIVERY_KEEP_DAYS`, and only have the
delivery that opened them. The newest tenth has all other deliveries. The database therefore looks
like one that was pruned for a year.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

#: Age of each alert: a year in total, and the last 29 days for the newest tenth.
_ALERT_AGE = """CASE WHEN a > {old} THEN interval '29 days' * (({alerts} - a)::float / {newest})
    ELSE interval '31 days' + interval '334 days' * (({old} - a)::float / {old}) END"""
#: Project of each alert. Most alerts belong to the large project or to the project that pages. Each
#: other project has a few alerts.
_PROJECT = """CASE WHEN a % 10 < 4 THEN {large} WHEN a > {old} AND a % 10 < 8 THEN {paging}
    WHEN a % 10 < 7 THEN {large} ELSE {first_small} + (a / 10) % {small} END"""
_INTEGRATION = """CASE WHEN p = {large} THEN {large_integration}
    WHEN p = {paging} THEN {paging_integration} ELSE {first_integration} + p - {first_small} END"""
_ALERTS = f"""generate_series({{first}}, {{last}}) AS a,
  LATERAL (SELECT now() - {_ALERT_AGE} AS at, {_PROJECT} AS p) AS more,
  LATERAL (SELECT {_INTEGRATION} AS i) AS of"""
_OPENING = "CASE WHEN a > {old} THEN {old} + {reports} * (a - {old} - 1) + 1 ELSE a END"
#: Alerts by the numbers of their deliveries.
_DELIVERIES = f"""generate_series({{first}}, {{last}}) AS d,
  LATERAL (SELECT CASE WHEN d > {{old}} THEN {{old}} + (d - {{old}} - 1) / {{reports}} + 1 ELSE d
    END AS a,
    CASE WHEN d > {{old}} THEN (d - {{old}} - 1) % {{reports}} ELSE 0 END AS nth) AS which,
  LATERAL (SELECT now() - {_ALERT_AGE} + nth * interval '1 s' AS at, {_PROJECT} AS p) AS more,
  LATERAL (SELECT {_INTEGRATION} AS i) AS of"""
#: Alerts of the project that pages, by number.
_PAGED = f"""{_ALERTS} WHERE p = {{paging}}"""


@dataclass(frozen=True, kw_only=True)
class TableRowCounts:
    """The row counts of the large tables."""

    alerts: int = 10_000_000
    deliveries: int = 30_000_000
    users: int = 1_000_000
    tokens: int = 5_000_000
    #: Number of projects with a few alerts each, besides the large project and the project that
    #: pages.
    small: int = 3_000

    @property
    def grants(self) -> int:
        """Number of authorizations, each with two token pairs; half have a personal token."""
        return self.tokens * 2 // 5

    def numbers(self) -> dict[str, int]:
        """Return the numbers that statements refer to."""
        newest = self.alerts // 10
        old = self.alerts - newest
        reports = (self.deliveries - old) // newest
        return (
            asdict(self)
            | {"newest": newest, "old": old, "reports": reports}
            | {"applications": max(self.users // 1000, 1)}
        )


@dataclass(frozen=True, kw_only=True)
class LargeTable:
    """A table, and the statement that fills it."""

    name: str
    columns: str
    #: Rest of the statement after SELECT.
    select: str
    #: Function that returns how many numbers the rows are generated from. The first number is 1.
    count: Callable[[TableRowCounts], int]
    #: True if the triggers of the table run, which is fast for few rows.
    with_triggers: bool = False

    def statement(self, sizes: TableRowCounts, ids: Mapping[str, int]) -> str:
        """Return the statement that fills the table; `ids` are the ids of earlier objects."""
        numbers = {"first": 1, "last": max(self.count(sizes), 1), **sizes.numbers(), **ids}
        filled = self.select.format(**numbers)
        return f"INSERT INTO {self.name} ({self.columns}) SELECT {filled}"


#: Small tables that other tables refer to, in order.
FOUNDATION_TABLES: Sequence[LargeTable] = (
    LargeTable(
        name="users",
        columns="username, email, name, password_hash, is_admin, state, kind, must_change_password,"
        " created_at, last_sign_in_at, email_confirmed_at, username_key, email_key, name_key",
        select="""'user-' || n, 'user-' || n || '@people.example',
  'Person ' || n % 9973 || ' ' || n, '!', false,
  CASE WHEN n % 5000 = 0 THEN 'pending' WHEN n % 500 = 0 THEN 'locked' ELSE 'active' END,
  'human', false, now() - n * interval '1 min', now() - n % 90 * interval '1 day', now(),
  'user-' || n, 'user-' || n || '@people.example', 'person ' || n % 9973 || ' ' || n
FROM generate_series({first}, {last}) AS n""",
        count=lambda of: of.users,
    ),
    LargeTable(
        name="groups",
        columns="name, path, created_at, path_key, name_key, two_factor_grace_period",
        select="""'crowd-' || n, 'crowd-' || n, now(), 'crowd-' || n, 'crowd-' || n, 48
FROM generate_series({first}, {last}) AS n""",
        count=lambda of: of.small // 10,
        with_triggers=True,
    ),
    LargeTable(
        name="projects",
        columns="group_id, name, path, visibility, created_at, path_key, name_key",
        select="""g.id, 'service-' || n, g.path || '/service-' || n,
  CASE WHEN n % 10 = 0 THEN 'internal' ELSE 'private' END, now(),
  g.path || '/service-' || n, 'service-' || n
FROM generate_series({first}, {last}) AS n
JOIN groups AS g ON g.path = 'crowd-' || 1 + n % ({small} / 10)
ORDER BY n""",
        count=lambda of: of.small,
        with_triggers=True,
    ),
)
#: Tables that need the ids of the foundations.
DEPENDENT_TABLES: Sequence[LargeTable] = (
    LargeTable(
        name="alert_counters",
        columns="project_id, last_iid",
        select="{first_small} + n - 1, 0 FROM generate_series({first}, {last}) AS n",
        count=lambda of: of.small,
    ),
    LargeTable(
        name="integrations",
        columns="project_id, type, name, active, endpoint_identifier, key_digest, key_ciphertext,"
        " created_at",
        select="""{first_small} + n - 1, 'http', 'Intake', true, left(md5(n::text), 16),
  sha256(('key ' || n)::bytea), '', now() FROM generate_series({first}, {last}) AS n""",
        count=lambda of: of.small,
        with_triggers=True,
    ),
    LargeTable(
        name="applications",
        columns="uid, owner_id, name, redirect_uris, scopes, confidential, require_pkce, trusted,"
        " created_at, name_key",
        select="""md5('application ' || n), {first_user} + n, 'App ' || n, '[]', 'read_user', true,
  true, false, now(), 'app ' || n FROM generate_series({first}, {last}) AS n""",
        count=lambda of: of.users // 1000,
    ),
    LargeTable(
        name="environments",
        columns="project_id, name, created_at, name_key",
        select="""id, word, now(), word FROM projects,
  LATERAL (VALUES ('production'), ('rare')) AS words (word)""",
        count=lambda _: 1,
    ),
    LargeTable(
        name="contacts",
        columns="user_id, type, label, shown_address, lane, address_ciphertext, created_at,"
        " confirmed_at, code_tries, claim, tries",
        select="""{first_user} + n, 'email', 'Mail', 'x', 'x', 'x', now(), now(), 0, 0, 0
FROM generate_series({first}, {last}) AS n""",
        count=lambda _: 100,
    ),
    LargeTable(
        name="page_recipients",
        columns="user_id, time_zone, critical_breaks_quiet, wants_follow_ups",
        select="{first_user} + n, 'UTC', true, true FROM generate_series({first}, {last}) AS n",
        count=lambda _: 100,
    ),
    LargeTable(
        name="incidents",
        columns="project_id, iid, title, description, urgency, status, author_id, author_name,"
        " alerts, created_at, updated_at",
        select="""{large}, n, 'Disks full in rack ' || n % 300, 'Free space is low.', n % 6,
  CASE WHEN n % 50 = 0 THEN 'triggered' WHEN n % 77 = 0 THEN 'acknowledged' ELSE 'resolved' END,
  {alice}, 'alice', 4, now() - interval '365 days' * (({last} - n)::float / {last}), now()
FROM generate_series({first}, {last}) AS n""",
        count=lambda of: of.alerts // 500,
        with_triggers=True,
    ),
)

LARGE_TABLES: Sequence[LargeTable] = (
    LargeTable(
        name="deliveries",
        columns="id, project_id, integration_id, format, is_test, received_at, status_code, sender,"
        " size, body, opened, joined, resolved, remarks, truncated_alerts, skipped, dropped",
        select=f"""d, p, i, 'http', false, at,
  CASE WHEN d % 1000 = 7 THEN 422 ELSE 200 END, '192.0.2.' || d % 250, 232, convert_to(
    '{{{{"title": "Disk full on web-' || a % 5000 || '", "description": "Free space is low. Rack r'
    || a % 300 || '", "service": "service-' || a % 40 || '", "monitoring_tool": "Nagios", '
    '"hosts": "web-' || a % 5000 || '", "severity": "high", "fingerprint": "' || a
    || '"}}}}', 'UTF8'),
  (nth = 0)::int, (nth > 0)::int, 0, '[]', 0, 0, 0
FROM {_DELIVERIES}""",
        count=lambda of: of.deliveries,
    ),
    LargeTable(
        name="alerts",
        columns="id, project_id, iid, integration_id, delivery_id, item_index, fingerprint, status,"
        " severity, title, description, service, monitoring_tool, hosts, environment, events,"
        " started_at, ended_at, last_event_at, created_at",
        select=f"""a, p, a, i, {_OPENING}, 0, sha256(a::text::bytea), status, a % 6,
  'Disk full on web-' || a % 5000, 'Free space is low. Rack r' || a % 300, 'service-' || a % 40,
  'Nagios', 'web-' || a % 5000,
  CASE WHEN a % 3 = 0 THEN 'production' WHEN a % 9973 = 1 THEN 'rare' END,
  CASE WHEN a > {{old}} THEN {{reports}} ELSE 1 + a % 97 END, at,
  CASE WHEN status = 'resolved' THEN at + interval '1 h' END, at + interval '1 min', at
FROM {_ALERTS},
  LATERAL (SELECT CASE WHEN a % 100 = 0 THEN 'triggered' WHEN a % 500 = 1 THEN 'acknowledged'
    WHEN a % 50 = 2 THEN 'ignored' ELSE 'resolved' END AS status) AS state""",
        count=lambda of: of.alerts,
    ),
    LargeTable(
        name="occurrences",
        columns="alert_id, delivery_id, item_index, action, is_late",
        select=f"a, d, 0, (nth > 0)::int, false FROM {_DELIVERIES}",
        count=lambda of: of.deliveries,
    ),
    LargeTable(
        name="alert_notes",
        columns="alert_id, user_id, user_name, kind, text, created_at",
        select=f"""a, {{first_user}} + a % 100, 'user-' || a % 100, 'status', 'resolved', at
FROM {_ALERTS} WHERE a % 10 = 0""",
        count=lambda of: of.alerts,
    ),
    LargeTable(
        name="assignments",
        columns="alert_id, user_id",
        select="n * 100, {first_user} + n % 100 FROM generate_series({first}, {last}) AS n",
        count=lambda of: of.alerts // 100,
    ),
    LargeTable(
        name="authorizations",
        columns="id, application_id, user_id, scopes, redirect_uri, auth_time, code_digest,"
        " code_expires_at, code_used_at, created_at",
        select="""{first_grant} + n, CASE WHEN n % 2 = 0 THEN {application}
    ELSE {first_application} + n % {applications} END, {first_user} + n % {users}, 'read_user',
  'https://client.example/callback', at, sha256(('code ' || n)::bytea), at + interval '10 min',
  at, at FROM generate_series({first}, {last}) AS n,
  LATERAL (SELECT now() - interval '365 days' * (({last} - n)::float / {last}) AS at) AS clock""",
        count=lambda of: of.grants,
    ),
    LargeTable(
        name="access_tokens",
        columns="authorization_id, application_id, user_id, digest, refresh_digest, scopes,"
        " created_at, expires_at, revoked_at, refreshed_at",
        select="""{first_grant} + n, CASE WHEN n % 2 = 0 THEN {application}
    ELSE {first_application} + n % {applications} END, {first_user} + n % {users},
  sha256(('access ' || nth || ' ' || n)::bytea), sha256(('refresh ' || nth || ' ' || n)::bytea),
  'read_user', at, at + interval '2 h', CASE WHEN nth = 0 THEN at END, CASE WHEN nth = 0 THEN at END
FROM generate_series({first}, {last}) AS n, generate_series(0, 1) AS nth,
  LATERAL (SELECT CASE nth WHEN 1 THEN now() - interval '365 days' * (({last} - n)::float / {last})
    ELSE now() - interval '29 days' * (({last} - n)::float / {last}) END AS at) AS clock""",
        count=lambda of: of.grants,
    ),
    LargeTable(
        name="personal_access_tokens",
        columns="user_id, name, digest, scopes, created_at, expires_at, revoked_at, name_key",
        select="""CASE WHEN n % 100 = 0 THEN {alice} ELSE {first_user} + n % {users} END,
  'Script ' || n, sha256(('personal ' || n)::bytea), 'read_api', at, at + interval '365 days',
  CASE WHEN n % 3 = 0 THEN at END, 'script ' || n
FROM generate_series({first}, {last}) AS n,
  LATERAL (SELECT now() - interval '364 days' * (({last} - n)::float / {last}) AS at) AS clock""",
        count=lambda of: of.grants // 2,
    ),
    LargeTable(
        name="members",
        columns="user_id, project_id, role, created_at",
        select="""{first_user} + n, CASE WHEN n % 50 = 0 THEN {large}
    ELSE {first_small} + n % {small} END, 30, now() FROM generate_series({first}, {last}) AS n""",
        count=lambda of: of.users,
    ),
    LargeTable(
        name="sign_ins",
        columns="token_digest, user_id, created_at, expires_at, address, methods, is_proof",
        select="""sha256(('sign-in ' || n)::bytea), {first_user} + n % {users}, now(),
  now() + n % 14 * interval '1 day' + interval '1 h', '192.0.2.1', 'pwd', true
FROM generate_series({first}, {last}) AS n""",
        count=lambda of: of.users // 5,
    ),
    LargeTable(
        name="audit_seals",
        columns="id, sealed_at, newest_at, event_count, events_digest, mac",
        select="""n, at, at, 1000, sha256(n::text::bytea), sha256(n::text::bytea)
FROM generate_series({first}, {last}) AS n,
  LATERAL (SELECT now() - interval '360 days' * (({last} - n)::float / {last}) AS at) AS clock""",
        count=lambda of: of.alerts // 10_000,
    ),
    LargeTable(
        name="audit_events",
        columns="created_at, kind, actor_id, actor_name, user_id, project_id, subject, details,"
        " address, request_id, seal_id, digest",
        select="""now() - interval '360 days' * (({last} - n)::float / {last}),
  (ARRAY['sign_in.succeeded', 'sign_in.failed', 'user.changed', 'token.created'])[1 + n % 4],
  CASE WHEN n % 10 = 0 THEN {alice} ELSE {first_user} + n % {users} END, 'user-' || n % {users},
  CASE WHEN n % 10 = 0 THEN {alice} ELSE {first_user} + n % {users} END,
  CASE WHEN n % 7 = 0 THEN {large} END, 'subject-' || n % 5000, '{{}}', '192.0.2.' || n % 250,
  md5(n::text), least(1 + n / 1000, {last} / 1000), sha256(n::text::bytea)
FROM generate_series({first}, {last}) AS n""",
        count=lambda of: of.alerts // 10,
    ),
    LargeTable(
        name="escalations",
        columns="alert_id, project_id, state, policy_id, round, step, round_began_at, has_reached,"
        " started_at, ended_at",
        select=f"""a, p, 'stopped', {{policy}}, 1, 1, at, true, at, at + interval '1 h'
FROM {_PAGED}""",
        count=lambda of: of.alerts,
    ),
    LargeTable(
        name="escalation_pages",
        columns="alert_id, user_id, round, step, paged_at, page_key, outcome, project_id,"
        " policy_id",
        select=f"""a, {{first_user}} + 1 + a % 100, 1, 1, at, 'page ' || a, 'accepted', p,
  {{policy}} FROM {_PAGED}""",
        count=lambda of: of.alerts,
    ),
    LargeTable(
        name="page_batches",
        columns="id, recipient_id, created_at",
        select=f"a, {{first_recipient}} + a % 100, at FROM {_PAGED}",
        count=lambda of: of.alerts,
    ),
    LargeTable(
        name="pages",
        columns="key, recipient_id, alert_id, kind, is_critical, created_at, due_at, batch_id,"
        " outcome, outcome_at, has_news",
        select=f"""'page ' || a, {{first_recipient}} + a % 100, a, 'firing', false, at, at, a,
  'accepted', at, false FROM {_PAGED}""",
        count=lambda of: of.alerts,
    ),
    LargeTable(
        name="page_messages",
        columns="contact_id, kind, batch_id, created_at, ended_at, outcome, tries",
        select=f"{{first_contact}} + a % 100, 'page', a, at, at, 'sent', 1 FROM {_PAGED}",
        count=lambda of: of.alerts,
    ),
    LargeTable(
        name="incident_alerts",
        columns="incident_id, alert_id",
        select="""{first_incident} + n / 4, n * 10 + 10
FROM generate_series(0, {last} - 1) AS n""",
        count=lambda of: of.alerts // 500 * 4,
    ),
    LargeTable(
        name="incident_notes",
        columns="incident_id, user_id, user_name, kind, text, details, created_at, updated_at",
        select="""{first_incident} + n / 3, {alice}, 'alice', 'note', 'Looking.', '{{}}', now(),
  now() FROM generate_series(0, {last} - 1) AS n""",
        count=lambda of: of.alerts // 500 * 3,
    ),
    LargeTable(
        name="mails",
        columns="key, recipient, subject, text, created_at, tries, sent_at",
        select="""'mail ' || n, 'user-' || n || '@people.example', 'Sign-in', repeat('text ', 60),
  at, 1, at FROM generate_series({first}, {last}) AS n,
  LATERAL (SELECT now() - interval '89 days' * (({last} - n)::float / {last}) AS at) AS clock""",
        count=lambda of: of.alerts // 50,
    ),
    LargeTable(
        name="webhook_deliveries",
        columns="endpoint_id, project_id, message_id, event, body, state, created_at, queued_at,"
        " tries, last_try_at, status_code",
        select="""{endpoint}, {large}, md5(n::text), 'alert.opened', repeat('body ', 60),
  CASE WHEN n % 100 = 0 THEN 'failed' ELSE 'delivered' END, at, at, 1, at, 200
FROM generate_series({first}, {last}) AS n,
  LATERAL (SELECT now() - interval '6 days' * (({last} - n)::float / {last}) AS at) AS clock""",
        count=lambda of: of.alerts // 50,
    ),
    LargeTable(
        name="deployments",
        columns="project_id, iid, environment_id, sha, ref, is_tag, status, created_at, updated_at,"
        " finished_at",
        select="""{large}, n, {environment}, md5(n::text), 'main', false, 'success', at, at, at
FROM generate_series({first}, {last}) AS n,
  LATERAL (SELECT now() - interval '365 days' * (({last} - n)::float / {last}) AS at) AS clock""",
        count=lambda of: of.alerts // 100,
    ),
    LargeTable(
        name="call_shapes",
        columns="id, digest, method, route, parameters, changes",
        select="""{first_shape} + n, sha256(n::text::bytea), 'GET', '/api/v4/route' || n, '', ''
FROM generate_series({first}, {last}) AS n""",
        count=lambda _: 500,
    ),
    LargeTable(
        name="call_counts",
        columns="digest, day, shape_id, user_id, application_id, count, first_at, last_at",
        select="""sha256(n::text::bytea), current_date - n % 89, {first_shape} + 1 + n % 500,
  CASE WHEN n % 10 = 0 THEN {alice} ELSE {first_user} + n % {users} END, {application}, 7, now(),
  now() FROM generate_series({first}, {last}) AS n""",
        count=lambda of: of.alerts // 20,
    ),
)
