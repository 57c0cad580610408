"""Full paths, references of the API by id or by full path, and the chain of groups above one."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.database.paging import parse_id
from models import Group, Project


def project_path(reference: str, *, session: Session) -> str:
    """Return the full path of a project reference; the project need not exist."""
    return _path(Project, reference, session=session)


def group_path(reference: str, *, session: Session) -> str:
    """Return the full path of a group reference; the group need not exist."""
    return _path(Group, reference, session=session)


def _path(table: type[Group | Project], reference: str, *, session: Session) -> str:
    number = parse_id(reference)
    if number is None:
        return reference.replace("\x00", "\ufffd")
    # A number is always an id, even if a group has it as its name.
    found = select(table.path).where(table.id == number, table.deleted_at.is_(None))
    return session.scalar(found) or ""


def ancestors(path: str) -> tuple[str, ...]:
    """Return the paths of all groups that a full path lies in, the outermost first.

    `ancestors("acme/shops/eu")` is `("acme", "acme/shops")`.
    """
    parts = path.split("/")
    return tuple("/".join(parts[:length]) for length in range(1, len(parts)))


def parent(path: str) -> str | None:
    """Return the path of the group that a full path lies in, if any."""
    head, _, _ = path.rpartition("/")
    return head or None
