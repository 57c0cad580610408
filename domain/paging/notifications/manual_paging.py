"""Checks for manual pages: recipients must have access to the alerts, and be reachable now."""

from collections.abc import Collection, Mapping

from domain.access.actor import UnitOfWork
from domain.access.roles import Ability
from domain.alerts.reading.text import replace_unstorable_characters
from domain.core.errors import InvalidError
from domain.paging.notifications.batching import UserReachability, find_reachability
from domain.projects.member_lists import find_users_with_ability
from domain.projects.views import ProjectView
from models import User
from models.folding import fold_text


def check_reachable(
    names: Collection[str], project: ProjectView, work: UnitOfWork, *, field: str, is_critical: bool
) -> Mapping[int, str]:
    """Return the names of users who can be paged now, by user id.

    Raise InvalidError with the reason if one of the users cannot be paged.
    """
    keys = {
        fold_text(replace_unstorable_characters(name).strip().removeprefix("@")): name
        for name in names
    }
    people = find_users_with_ability(
        User.username_key.in_(keys),
        Ability.READ_ALERTS,
        project.namespace,
        session=work.session,
        today=work.now.date(),
    )
    missing = keys.keys() - {fold_text(name) for name in people.values()}
    if missing:
        name = keys[min(missing)].strip()[:100]
        message = f'"{name}" is not a member who can see the alerts of this project.'
        raise InvalidError(message, field=field)
    found = find_reachability(
        people,
        project.namespace,
        is_critical=is_critical,
        sends_mail=bool(work.settings.mail_url),
        session=work.session,
        now=work.now,
    )
    for user_id, reach in sorted(found.items()):
        if reach is not UserReachability.REACHABLE:
            message = f"@{people[user_id]} {reach.value}, so no page was sent."
            raise InvalidError(message, field=field)
    return people
