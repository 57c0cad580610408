"""A script with npm's gitbeaker sets up a group and works in it."""

from pathlib import Path

import pytest

from tests.stories.javascript import install, run_script
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import make_user, unique
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases

FOLDER = Path(__file__).parents[1] / "gitbeaker"


@pytest.mark.spec("G1", "M1", "L3")
def test_a_script_sets_up_a_group_works_in_it_and_removes_it(gatebell: LiveGatebell) -> None:
    install(FOLDER)
    owner, member = make_user(gatebell), make_user(gatebell)
    name = unique("team")
    done = run_script(
        FOLDER,
        {
            "host": gatebell.url,
            "token": make_token(gatebell, owner).clear,
            "name": name,
            "member": api_caller(gatebell, member).done("GET", "/user")["id"],
        },
    )
    assert done == {
        "user": owner.username,
        "version": done["version"],
        "path": f"{name}/shop",
        "member": 30,
        "members": 2,
        "deployment": "success",
        "status": "success",
        "links": 1,
        "bot": True,
        "numbered": 2,
        "keyset": 2,
        "alerts": [],
        "missing": 404,
        "archived": 403,
    }
    owners = api_caller(gatebell, owner)
    assert owners.done("GET", "/projects?membership=true") == []
