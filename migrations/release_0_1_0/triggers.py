"""Search tables and triggers.

The triggers run in the transaction that changes a row, including changes in plain SQL. They update
the search tables, daily counts and environments, and note what a report changed in an alert. They
also add rows for the followers of alerts, incidents and audit events, and fold the names that users
search for.
"""

import sqlalchemy as sa
from alembic import op

# -- Search tables.

_SEARCHED = ("title", "description", "service", "monitoring_tool", "hosts", "environment")
#: Characters to remove. Postgres would parse "web-1" as "web" and the number -1, and an address or
#: a path as one word.
_PUNCTUATION = "[]!\"#$%&''()*+,./:;<=>?@[^_`{|}~\\\\-]"


def _columns(columns: tuple[str, ...], *, of: str = "") -> str:
    return ", ".join(f"{of}{column}" for column in columns)


def _document(words: str, project: str) -> str:
    """Return the search document of a row, with the project as a word that users cannot enter."""
    return (
        f"to_tsvector('simple', regexp_replace(concat_ws(' ', {words}), "
        f"'{_PUNCTUATION}', ' ', 'g')) || array_to_tsvector(ARRAY['project:' || {project}])"
    )


def _search_on_postgres(subject: str, reference: str = "") -> tuple[str, ...]:
    """Return the statements for the search table and search function of alerts or incidents."""
    return (
        f"""
        CREATE TABLE {subject}_search (
          {subject}_id BIGINT NOT NULL CONSTRAINT pk_{subject}_search PRIMARY KEY{reference},
          document TSVECTOR NOT NULL
        )
        """,
        f"CREATE INDEX ix_{subject}_search_document ON {subject}_search USING gin (document)",
        f"""
        CREATE FUNCTION {subject}s_with(words TSQUERY, of_project BIGINT, most INT)
        RETURNS SETOF BIGINT LANGUAGE sql STABLE
        -- Of a word that it has never seen, the planner thinks that many rows have it.
        SET enable_seqscan = off
        AS $$
          SELECT {subject}_id FROM {subject}_search
          WHERE document @@ (words && ('''project:' || of_project || '''')::tsquery)
            AND numnode(words) > 0
          LIMIT most
        $$
        """,
        f"""
        CREATE TRIGGER {subject}_search_without_accents BEFORE INSERT OR UPDATE ON {subject}_search
        FOR EACH ROW
        WHEN (NOT octet_length(NEW.document::text) = char_length(NEW.document::text))
        EXECUTE FUNCTION alert_search_without_accents()
        """,
    )


#: Foreign key of incidents. The rows of alerts are removed by a trigger instead, so that an insert
#: needs no lookup.
_REFERENCE_OF_INCIDENTS = """
CONSTRAINT fk_incident_search_incident_id REFERENCES incidents (id) ON DELETE CASCADE
"""


def _search_on_sqlite(subject: str, columns: tuple[str, ...]) -> str:
    return f"""
    CREATE VIRTUAL TABLE {subject}_search
    USING fts5({_columns(columns)}, content='{subject}s', content_rowid='id',
      tokenize='unicode61 remove_diacritics 2')
    """


def _remember(subject: str, columns: tuple[str, ...]) -> str:
    return f"""
    INSERT INTO {subject}_search (rowid, {_columns(columns)})
    VALUES (NEW.id, {_columns(columns, of="NEW.")});
    """


def _forget(subject: str, columns: tuple[str, ...]) -> str:
    return f"""
    INSERT INTO {subject}_search ({subject}_search, rowid, {_columns(columns)})
    VALUES ('delete', OLD.id, {_columns(columns, of="OLD.")});
    """


_WITHOUT_ACCENTS = r"""
CREATE FUNCTION alert_search_without_accents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.document := NEW.document || array_to_tsvector(ARRAY(
    SELECT lower(normalize(
      regexp_replace(normalize(word, NFD), '([A-Za-z])[\u0300-\u036f]+', '\1', 'g'), NFC))
    FROM unnest(tsvector_to_array(NEW.document)) AS word
    WHERE NOT octet_length(word) = char_length(word)
  ));
  RETURN NEW;
END $$
"""

# -- New alerts: search documents, daily counts, environments.

_ALERTS_ADDED_ON_POSTGRES = (
    f"""
    CREATE FUNCTION alerts_added() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NOT EXISTS (SELECT FROM added) THEN
        RETURN NULL;
      END IF;
      INSERT INTO alert_search
      SELECT id, {_document(_columns(_SEARCHED), "project_id")} FROM added;
      INSERT INTO alert_day_additions (project_id, day, environment, severity, alerts)
      SELECT project_id, (created_at AT TIME ZONE 'UTC')::date, coalesce(environment, ''), severity,
        count(*)
      FROM added GROUP BY 1, 2, 3, 4;
      INSERT INTO environments (project_id, name, created_at)
      SELECT project_id, environment, min(created_at) FROM added AS new_ones
      WHERE environment IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM environments AS known
        WHERE known.project_id = new_ones.project_id AND known.name = new_ones.environment
      )
      GROUP BY project_id, environment
      ON CONFLICT (project_id, name) DO NOTHING;
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER alerts_added AFTER INSERT ON alerts REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION alerts_added()
    """,
    """
    CREATE FUNCTION alerts_removed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      DELETE FROM alert_search WHERE alert_id = OLD.id;
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER alerts_removed AFTER DELETE ON alerts
    FOR EACH ROW EXECUTE FUNCTION alerts_removed()
    """,
)
_ALERTS_ADDED_ON_SQLITE = (
    f"""
    CREATE TRIGGER alerts_added AFTER INSERT ON alerts BEGIN
      {_remember("alert", _SEARCHED)}
      INSERT INTO alert_days (project_id, day, environment, severity, alerts)
      VALUES (NEW.project_id, substr(NEW.created_at, 1, 10), coalesce(NEW.environment, ''),
        NEW.severity, 1)
      ON CONFLICT (project_id, day, environment, severity) DO UPDATE SET alerts = alerts + 1;
      INSERT INTO environments (project_id, name, created_at)
      SELECT NEW.project_id, NEW.environment, NEW.created_at WHERE NEW.environment IS NOT NULL
      ON CONFLICT (project_id, name) DO NOTHING;
    END
    """,
    f"""
    CREATE TRIGGER alerts_removed AFTER DELETE ON alerts BEGIN
      {_forget("alert", _SEARCHED)}
    END
    """,
)

# -- Changed alerts: a note with old and new values, and new search documents.

#: Columns that a report may change, in the order in which pages show them.
_SHOWN = ("severity", "title", "description", "service", "monitoring_tool", "hosts", "query")
#: Maximum length of a value in a note. Queries can have any length, but the activity shows only
#: their beginning.
_LONGEST = 1000


def _value(row: str, column: str) -> str:
    if column == "severity":
        return f"{row}.severity"
    # An empty text means that there is no value. Nullable columns are never empty.
    return f"nullif(substr({row}.{column}, 1, {_LONGEST}), '')"


def _changes(array: str, wrapped: str) -> str:
    """Return the members of a JSON object with the old and new value of each changed column."""
    members = []
    for column in _SHOWN:
        differs = f"OLD.{column} IS NOT NULL AND " if column == "query" else ""
        differs += f"OLD.{column} IS DISTINCT FROM NEW.{column}"
        pair = f"{array}({_value('OLD', column)}, {_value('NEW', column)})"
        members.append(f"'{column}', {wrapped}(CASE WHEN {differs} THEN {pair} END)")
    return ", ".join(members)


def _note(changes: str) -> str:
    return f"""
    INSERT INTO alert_notes (alert_id, user_name, kind, text, created_at, delivery_id, changes)
    SELECT NEW.id, '', 'note', '', NEW.last_event_at, NEW.delivery_id, said.changes
    FROM (SELECT {changes} AS changes) AS said
    WHERE CAST(said.changes AS text) <> '{{}}';
    """


_ALERTS_CHANGED_ON_POSTGRES = (
    f"""
    CREATE FUNCTION alerts_changed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      {_note(f"json_strip_nulls(json_build_object({_changes('json_build_array', '')}))")}
      UPDATE alert_search
      SET document = {_document(_columns(_SEARCHED, of="NEW."), "NEW.project_id")}
      WHERE alert_id = NEW.id;
      RETURN NULL;
    END $$
    """,
    f"""
    CREATE TRIGGER alerts_changed AFTER UPDATE OF {_columns(_SHOWN)} ON alerts
    FOR EACH ROW
    WHEN (({_columns(_SHOWN, of="OLD.")}) IS DISTINCT FROM ({_columns(_SHOWN, of="NEW.")}))
    EXECUTE FUNCTION alerts_changed()
    """,
)
_ALERTS_CHANGED_ON_SQLITE = (
    f"""
    CREATE TRIGGER alerts_changed AFTER UPDATE OF {_columns(_SHOWN)} ON alerts
    WHEN ({_columns(_SHOWN, of="OLD.")}) IS NOT ({_columns(_SHOWN, of="NEW.")})
    BEGIN
      {_note(f"json_patch('{{}}', json_object({_changes('json_array', 'json')}))")}
      {_forget("alert", _SEARCHED)}
      {_remember("alert", _SEARCHED)}
    END
    """,
)

# -- Followers: each statement runs for each row that matches the condition.

_CHANGES_OF_ALERTS = """
INSERT INTO alert_changes (follower, project_id, alert_id, kind, created_at, tries)
SELECT f.follower, NEW.project_id, NEW.id, {kind}, {now}, 0
FROM alert_followers AS f WHERE f.project_id = NEW.project_id
"""
#: Without a change of status, only a higher severity (a lower rank) is passed on.
_KIND_OF_ALERT_CHANGE = """
CASE WHEN OLD.status = NEW.status THEN 'raised'
  WHEN NEW.status = 'triggered' THEN 'reopened' ELSE NEW.status END
"""
_CHANGES_OF_INCIDENTS = """
INSERT INTO webhook_incident_changes (project_id, incident_id, kind, created_at)
SELECT NEW.project_id, NEW.id, {kind}, {now}
WHERE EXISTS (
  SELECT 1 FROM webhook_endpoints AS e
  WHERE e.project_id = NEW.project_id AND e.paused_at IS NULL
)
"""
_KIND_OF_INCIDENT_CHANGE = "CASE WHEN NEW.status = 'triggered' THEN 'reopened' ELSE NEW.status END"
_FOLLOWING = (
    (
        "alert_opened_changes",
        "INSERT ON alerts",
        "NEW.status <> 'resolved'",
        _CHANGES_OF_ALERTS.replace("{kind}", "'opened'"),
    ),
    (
        "alert_changed_changes",
        "UPDATE OF status, severity ON alerts",
        "OLD.status <> NEW.status OR (NEW.severity < OLD.severity AND NEW.status <> 'resolved')",
        _CHANGES_OF_ALERTS.replace("{kind}", _KIND_OF_ALERT_CHANGE),
    ),
    (
        "alert_environment_returns",
        "UPDATE OF events, status ON alerts",
        """
        NEW.environment IS NOT NULL AND (
          (NEW.status = 'ignored' AND NEW.events > OLD.events)
          OR (NEW.status IN ('triggered', 'acknowledged')
            AND OLD.status IN ('resolved', 'ignored'))
        )
        """,
        """
        INSERT INTO environments (project_id, name, created_at)
        SELECT NEW.project_id, NEW.environment, NEW.last_event_at WHERE true
        ON CONFLICT (project_id, name) DO NOTHING
        """,
    ),
    (
        "incident_opened_webhooks",
        "INSERT ON incidents",
        "",
        _CHANGES_OF_INCIDENTS.replace("{kind}", "'opened'"),
    ),
    (
        "incident_changed_webhooks",
        "UPDATE OF status ON incidents",
        "(OLD.status <> NEW.status)",
        _CHANGES_OF_INCIDENTS.replace("{kind}", _KIND_OF_INCIDENT_CHANGE),
    ),
    (
        "audit_event_streams",
        "INSERT ON audit_events",
        "",
        """
        INSERT INTO audit_stream_entries (stream_id, event_id, message_id, created_at)
        SELECT s.id, NEW.id, {new_id}, NEW.created_at FROM audit_streams AS s
        """,
    ),
)


def _following_on_postgres(name: str, event: str, condition: str, does: str) -> tuple[str, ...]:
    when = f"WHEN ({condition})" if condition else ""
    does = does.replace("{now}", "clock_timestamp()")
    does = does.replace("{new_id}", "replace(gen_random_uuid()::text, '-', '')")
    return (
        f"""
        CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          {does};
          RETURN NULL;
        END $$
        """,
        f"CREATE TRIGGER {name} AFTER {event} FOR EACH ROW {when} EXECUTE FUNCTION {name}()",
    )


def _following_on_sqlite(name: str, event: str, condition: str, does: str) -> str:
    when = f"WHEN {condition}" if condition else ""
    # Times have the format in which SQLAlchemy stores them.
    does = does.replace("{now}", "strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'")
    does = does.replace("{new_id}", "lower(hex(randomblob(16)))")
    return f"CREATE TRIGGER {name} AFTER {event} {when} BEGIN {does}; END"


# -- Incidents: search documents.

_WORDS_OF_INCIDENTS = ("title", "description")
_INCIDENTS_WORDED_ON_POSTGRES = (
    f"""
    CREATE FUNCTION incidents_worded() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO incident_search
      VALUES (NEW.id, {_document("NEW.title, left(NEW.description, 20000)", "NEW.project_id")})
      ON CONFLICT (incident_id) DO UPDATE SET document = excluded.document;
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER incidents_worded AFTER INSERT OR UPDATE OF title, description ON incidents
    FOR EACH ROW EXECUTE FUNCTION incidents_worded()
    """,
)
_INCIDENTS_WORDED_ON_SQLITE = tuple(
    f"CREATE TRIGGER {name} AFTER {event} ON incidents BEGIN {does} END"
    for name, event, does in (
        ("incidents_added", "INSERT", _remember("incident", _WORDS_OF_INCIDENTS)),
        ("incidents_removed", "DELETE", _forget("incident", _WORDS_OF_INCIDENTS)),
        (
            "incidents_worded",
            "UPDATE OF title, description",
            _forget("incident", _WORDS_OF_INCIDENTS) + _remember("incident", _WORDS_OF_INCIDENTS),
        ),
    )
)

# -- Folded names for the search, since the code of former releases does not fold them.

_FOLDED = {"users": ("username", "email"), "groups": ("path",), "projects": ("path",)}


def _folded_on_postgres(table: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    folded = " ".join(f"NEW.{x}_key := coalesce(NEW.{x}_key, lower(NEW.{x}));" for x in columns)
    return (
        f"""
        CREATE FUNCTION {table}_folded() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          {folded}
          RETURN NEW;
        END $$
        """,
        f"""
        CREATE TRIGGER {table}_folded BEFORE INSERT ON {table}
        FOR EACH ROW EXECUTE FUNCTION {table}_folded()
        """,
    )


def _folded_on_sqlite(table: str, columns: tuple[str, ...]) -> str:
    is_missing = " OR ".join(f"NEW.{x}_key IS NULL" for x in columns)
    folded = ", ".join(f"{x}_key = coalesce({x}_key, lower({x}))" for x in columns)
    return f"""
    CREATE TRIGGER {table}_folded AFTER INSERT ON {table} WHEN {is_missing}
    BEGIN
      UPDATE {table} SET {folded} WHERE id = NEW.id;
    END
    """


# -- Alert numbers on Postgres: a sequence for each project that receives alerts. The service's role
# need not own the tables, so these functions run with the rights of their owner.

_NUMBERS = (
    """
    CREATE FUNCTION alert_numbers_begin() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    DECLARE
      taken int;
    BEGIN
      PERFORM pg_advisory_xact_lock(hashtext('alert_numbers'), NEW.project_id::int);
      IF to_regclass('alert_iids_' || NEW.project_id) IS NULL THEN
        SELECT last_iid INTO taken FROM alert_counters WHERE project_id = NEW.project_id;
        EXECUTE format(
          'CREATE SEQUENCE alert_iids_%s AS integer START %s', NEW.project_id, taken + 1);
      END IF;
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER alert_numbers_begin AFTER INSERT ON integrations
    FOR EACH ROW EXECUTE FUNCTION alert_numbers_begin()
    """,
    """
    CREATE TRIGGER heartbeat_alert_numbers AFTER INSERT ON heartbeats
    FOR EACH ROW EXECUTE FUNCTION alert_numbers_begin()
    """,
    """
    CREATE FUNCTION alert_numbers_end() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    BEGIN
      EXECUTE format('DROP SEQUENCE IF EXISTS alert_iids_%s', OLD.project_id);
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER alert_numbers_end AFTER DELETE ON alert_counters
    FOR EACH ROW EXECUTE FUNCTION alert_numbers_end()
    """,
    """
    CREATE FUNCTION alert_numbers_keep() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION 'this host numbers alerts as before migration 0008: update it'
        USING ERRCODE = 'feature_not_supported';
    END $$
    """,
    """
    CREATE TRIGGER alert_numbers_keep BEFORE UPDATE OF last_iid ON alert_counters
    FOR EACH ROW WHEN (NEW.last_iid IS DISTINCT FROM OLD.last_iid)
    EXECUTE FUNCTION alert_numbers_keep()
    """,
)


def create_triggers() -> None:
    """Create the triggers, and the tables that only triggers write."""
    bind = op.get_bind()
    if bind.dialect.name == "postgresql":
        # The schema is explicit, so that the search path of the current role has no effect.
        schema = bind.execute(sa.text("SELECT quote_ident(current_schema())")).scalar_one()
        statements = _on_postgres(schema)
    else:
        statements = _on_sqlite()
    for statement in statements:
        op.execute(sa.text(statement.replace(":", "\\:")))


def _on_postgres(schema: str) -> list[str]:
    statements = [_WITHOUT_ACCENTS, *_search_on_postgres("alert")]
    statements += _search_on_postgres("incident", _REFERENCE_OF_INCIDENTS)
    statements += _ALERTS_ADDED_ON_POSTGRES + _ALERTS_CHANGED_ON_POSTGRES
    statements += _INCIDENTS_WORDED_ON_POSTGRES
    for following in _FOLLOWING:
        statements += _following_on_postgres(*following)
    for table, columns in _FOLDED.items():
        statements += _folded_on_postgres(table, columns)
    return statements + [each.replace("{schema}", schema) for each in _NUMBERS]


def _on_sqlite() -> list[str]:
    statements = [
        _search_on_sqlite("alert", _SEARCHED),
        _search_on_sqlite("incident", _WORDS_OF_INCIDENTS),
        *_ALERTS_ADDED_ON_SQLITE,
        *_ALERTS_CHANGED_ON_SQLITE,
        *_INCIDENTS_WORDED_ON_SQLITE,
    ]
    statements += [_following_on_sqlite(*following) for following in _FOLLOWING]
    return statements + [_folded_on_sqlite(table, columns) for table, columns in _FOLDED.items()]
