"""Lists the services of a project's alerts."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from models import Alert


def services_of(project_id: int, *, most: int, session: Session) -> tuple[str, ...]:
    """Return the distinct names of services in order, at most `most`.

    It skips through the index from one name to the next, so its cost depends on the number of names
    and not on the number of alerts.
    """
    least = func.min(Alert.service)
    named = (
        select(least.label("name"))
        .where(Alert.project_id == project_id, Alert.service.is_not(None))
        .cte("named", recursive=True)
    )
    following = (
        select(least)
        .where(Alert.project_id == project_id, Alert.service > named.c.name)
        .correlate(named)
        .scalar_subquery()
    )
    named = named.union_all(select(following).where(named.c.name.is_not(None)))
    found = session.scalars(select(named.c.name).where(named.c.name.is_not(None)).limit(most))
    return tuple(found)
