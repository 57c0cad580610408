"""Tests that pruning finds rows by index, on large and on new tables."""

import pytest
from flask import Flask

from tests.support.alerts.senders import JSON
from tests.support.service.commands import operate
from tests.web.database.plans.test_hot_plans import made, plan_of, sent_by
from web.jobs.retention import prune_database
from web.services import get_settings

pytestmark = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)

#: Conditions on expired rows, with the index that finds them.
_BY = (
    ("access_tokens.revoked_at <", "ix_access_tokens_revoked_at"),
    ("access_tokens.expires_at <", "ix_access_tokens_alone"),
    ("personal_access_tokens.revoked_at <", "ix_personal_access_tokens_revoked_at"),
    ("personal_access_tokens.expires_at <", "ix_personal_access_tokens_expires_at_id"),
    ("authorizations.code_used_at IS NULL", "ix_authorizations_unused_code"),
    ("mails.created_at <", "ix_mails_created_at"),
    ("sign_ins.expires_at <", "ix_sign_ins_expires_at"),
)


def test_expired_rows_are_found_by_index(app: Flask) -> None:
    asked = sent_by(app, lambda: prune_database(get_settings()))
    for words, index in _BY:
        statement = next(each for each in asked if words in each[0])
        plan = plan_of(app, statement)
        assert f" {index} " in plan, (words, plan)
        assert "Index Cond" in plan, (words, plan)


@pytest.mark.long
def test_test_deliveries_are_found_by_index_in_a_long_log(app: Flask) -> None:
    integration = made(app, "http")
    token = operate(app, "tokens", "create", "alice", "--name", "n", "--scopes", "api")["token"]
    headers = {"Authorization": f"Bearer {integration['key']}", "Content-Type": JSON}
    client = app.test_client()
    path = integration["url"].removeprefix("http://localhost")
    client.post(path, data=b'{"title": "x", "start_time": "never"}', headers=headers)
    operate(app, "members", "add", "acme/shop", "alice", "maintainer")
    log = f"/api/v4/projects/acme%2Fshop/alert_management_integrations/{integration['id']}"
    asked = sent_by(
        app,
        lambda: client.get(f"{log}/deliveries?show=tests", headers={"PRIVATE-TOKEN": token}),
    )
    statement = next(each for each in asked if each[0].startswith("SELECT deliveries."))
    assert "ix_deliveries_tests" in plan_of(app, statement)
