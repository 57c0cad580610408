"""How the API names a project or a group: by its number, or by its full path."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.database.paging import LARGEST_ID
from models import Group, Project


def project_path(reference: str, *, session: Session) -> str:
    """Return the full path that a reference means; whether there is such a project is not said."""
    return _path(Project, reference, session=session)


def group_path(reference: str, *, session: Session) -> str:
    """Return the full path that a reference means; whether there is such a group is not said."""
    return _path(Group, reference, session=session)


def _path(table: type[Group | Project], reference: str, *, session: Session) -> str:
    is_number = reference.isascii() and reference.isdecimal() and len(reference) < 20  # noqa: PLR2004 - 64 bits
    if not is_number or int(reference) > LARGEST_ID:
        return reference.replace("\x00", "\ufffd")
    # A number is always an id, also where a group bears it as its name.
    return session.scalar(select(table.path).where(table.id == int(reference))) or ""
