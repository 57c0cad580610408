"""Tests that timelines read only rows of their project, despite equal environment names."""

from datetime import timedelta

import pytest
from flask import Flask
from sqlalchemy import text

from domain.ci_cd.deployment_actions import find_deployments_between
from tests.support.database.sql_statements import assert_nothing_is_read_whole, collect_plans
from tests.support.database.work import project_in
from tests.support.service.commands import operate
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work

_OTHERS, _OLD = 2_000, 50_000
#: Projects with one environment each; one project has deployments, most of them old.
_FILLED = (
    """
INSERT INTO projects SELECT (jsonb_populate_record(projects, jsonb_build_object(
  'id', 1000 + n, 'path', 'acme/other-' || n, 'path_key', 'acme/other-' || n))).*
FROM projects, generate_series(1, :count) AS n""",
    """
INSERT INTO environments (project_id, name, name_key, created_at)
SELECT id, 'production', 'production', created_at FROM projects""",
    """
INSERT INTO deployments (project_id, iid, environment_id, sha, ref, is_tag, status, created_at,
  updated_at)
SELECT project_id, n, id, 'a', 'main', false, 'success', moment, moment
FROM environments, generate_series(0, :old) AS n,
  LATERAL (SELECT now() - n * interval '2 days' AS moment) AS clock
WHERE project_id = :project_id""",
)


@pytest.mark.long
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("state", ["never analyzed", "analyzed"])
def test_a_timeline_reads_only_deployments_of_its_project(app: Flask, state: str) -> None:
    operate(app, "groups", "create", "acme")
    project_id = operate(app, "projects", "create", "acme/shop")["id"]
    with app.app_context():
        session = db.session()
        for statement in _FILLED:
            given = {"count": _OTHERS, "old": _OLD, "project_id": project_id}
            session.execute(text(statement), given)
        session.commit()
        if state == "analyzed":
            session.execute(text("ANALYZE projects, environments, deployments"))
        unit = get_unit_of_work()
        project = project_in(session, project_id)
        start, end = unit.now - timedelta(days=1), unit.now + timedelta(days=1)
        with collect_plans("deployments") as found:
            shown = find_deployments_between(unit, project, ["production"], start=start, end=end)
    assert len(shown) == 1
    assert_nothing_is_read_whole(found, "environments", state)
