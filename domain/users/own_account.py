"""What users change of their own account."""

from domain.access.actions import action
from domain.access.actor import Work
from domain.accounts.administration import get_account
from domain.accounts.types import NameBody
from domain.accounts.users import BOT, Profile, change_profile
from domain.errors import ForbiddenError


@action("users.rename_current")
def rename(work: Work, new: NameBody) -> None:
    """Change one's own name."""
    user_id = work.actor.id or 0
    if get_account(user_id, session=work.session).kind == BOT:
        message = "A bot has the name of its access token."
        raise ForbiddenError(message)
    change_profile(user_id, Profile(name=new.name), session=work.session)
