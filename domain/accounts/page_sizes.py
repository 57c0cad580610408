"""How many rows pages of lists show to a user."""

from domain.access.actions import action
from domain.access.actor import Work
from domain.errors import InvalidError
from models import User

#: The sizes of pages to choose from.
PAGE_SIZES = (20, 50, 100)


@action("own_account.change")
def choose_page_size(work: Work, size: int) -> None:
    """Keep the size that a user chose; raise InvalidError for another number."""
    if size not in PAGE_SIZES:
        message = f"A page has {', '.join(map(str, PAGE_SIZES[:-1]))} or {PAGE_SIZES[-1]} rows."
        raise InvalidError(message, field="size")
    work.session.get_one(User, work.actor.id).page_size = size
