"""Users with a role in a project: one for each role, shared by all tests."""

from functools import cache

import requests

from domain.access.roles import Role
from domain.core.errors import NotFoundError
from domain.projects.members import OPERATOR_VIEWER, add_member, change_role, remove_member
from tests.support.accounts.namespaces import find_member, get_namespace
from tests.support.accounts.people import Person, database_of, make_user, now, signed_in
from tests.support.service.live import LiveGatebell


@cache
def person_for(gatebell: LiveGatebell, role: Role | None) -> Person:
    """Return the user that has this role in tests; None is a user without a role."""
    return make_user(gatebell, name=role.name.lower() if role else "stranger")


def give_role(gatebell: LiveGatebell, namespace: str, person: Person, role: Role) -> None:
    """Make a user a member of a group or project with exactly this role."""
    with database_of(gatebell) as session:
        found = get_namespace(namespace, session=session)
        try:
            number = find_member(found, person.username, session=session)
        except NotFoundError:
            add_member(
                found, person.username, role, viewer=OPERATOR_VIEWER, session=session, now=now()
            )
        else:
            change_role(found, number, role, viewer=OPERATOR_VIEWER, session=session)


def take_role(gatebell: LiveGatebell, namespace: str, person: Person) -> None:
    """Remove a user from the members of a group or project."""
    with database_of(gatebell) as session:
        found = get_namespace(namespace, session=session)
        number = find_member(found, person.username, session=session)
        remove_member(found, number, viewer=OPERATOR_VIEWER, session=session)


def find_member_id(gatebell: LiveGatebell, namespace: str, person: Person) -> int:
    """Return the id of a user's membership."""
    with database_of(gatebell) as session:
        return find_member(
            get_namespace(namespace, session=session), person.username, session=session
        )


def browser_of(gatebell: LiveGatebell, namespace: str, role: Role | None) -> requests.Session:
    """Return the browser of a user with this role in a group or project."""
    person = person_for(gatebell, role)
    if role is not None:
        give_role(gatebell, namespace, person, role)
    return signed_in(gatebell, person)
