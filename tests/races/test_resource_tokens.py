"""Tests of token requests of a user whose role is removed concurrently."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, update

from domain.access.roles import Role
from models import Member, Project
from tests.support.accounts.people import alice, database_of, make_project, make_user
from tests.support.accounts.resource_tokens import (
    day,
    get_namespace,
    make_bot_token,
    post,
    script_of,
)
from tests.support.accounts.team import find_member_id, give_role
from tests.support.service.live import LiveGatebell

#: SQLite has one writer, which reads the role after the other one has finished.
pytestmark = pytest.mark.one_database("postgres")


@pytest.mark.parametrize("action", ["create", "rotate", "revoke"])
def test_a_role_that_is_removed_concurrently_gives_no_token(
    gatebell: LiveGatebell, action: str
) -> None:
    project = make_project(gatebell, alice(gatebell))
    namespace, owner = get_namespace(gatebell, "projects", project), make_user(gatebell)
    give_role(gatebell, project, owner, Role.OWNER)
    script = script_of(gatebell, owner)
    bot = make_bot_token(script, namespace, access_level=int(Role.OWNER))
    calls = {
        "create": lambda: post(script, namespace, access_level=int(Role.OWNER)),
        "rotate": lambda: script.send_request(
            "POST", f"{namespace.by_id}/{bot.id}/rotate", json={"expires_at": day(9)}
        ),
        "revoke": lambda: script.send_request("DELETE", f"{namespace.by_id}/{bot.id}"),
    }
    number = find_member_id(gatebell, project, owner)
    with ThreadPoolExecutor() as pool:
        with database_of(gatebell) as session:
            # A change of the role holds this lock on the project until its commit.
            session.execute(
                select(Project.id).where(Project.id == namespace.id).with_for_update(key_share=True)
            )
            session.execute(
                update(Member).where(Member.id == number).values(role=int(Role.MAINTAINER))
            )
            asked = pool.submit(calls[action])
            with pytest.raises(TimeoutError):
                asked.result(timeout=1)
        answer = asked.result()
    assert answer.status_code in {400, 403}, answer.text
    assert "is Maintainer." in answer.text
