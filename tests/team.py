"""People with a role in a project: one for each role, shared by all tests."""

from functools import cache

import requests

from domain.accounts.roles import Role
from domain.projects.members import add_member, get_place
from tests.live import LiveGatebell
from tests.people import Person, database_of, make_user, now, signed_in


@cache
def person_for(gatebell: LiveGatebell, role: Role | None) -> Person:
    """Return the one who gets this role wherever a test needs it; None is a stranger."""
    return make_user(gatebell, name=role.name.lower() if role else "stranger")


def give_role(gatebell: LiveGatebell, place: str, person: Person, role: Role) -> None:
    """Make somebody a member of a group or a project."""
    with database_of(gatebell) as session:
        found = get_place(place, session=session)
        add_member(found, person.username, role, session=session, now=now())


def browser_of(gatebell: LiveGatebell, place: str, role: Role | None) -> requests.Session:
    """Return the browser of somebody with this role in a group or a project."""
    person = person_for(gatebell, role)
    if role is not None:
        give_role(gatebell, place, person, role)
    return signed_in(gatebell, person)
