"""How many rows pages of lists show to a user."""

from sqlalchemy.orm import Session

from domain.errors import InvalidError
from models import User

#: The sizes of pages to choose from.
PAGE_SIZES = (20, 50, 100)


def choose_page_size(user_id: int, size: int, *, session: Session) -> None:
    """Keep the size that a user chose; raise InvalidError for another number."""
    if size not in PAGE_SIZES:
        message = f"A page has {', '.join(map(str, PAGE_SIZES[:-1]))} or {PAGE_SIZES[-1]} rows."
        raise InvalidError(message, field="size")
    session.get_one(User, user_id).page_size = size
