"""Users, and the personal data of one."""

from typing import Literal

from pydantic import ConfigDict

from web.api.schemas.base import Body, Resource, Text, Time


class CurrentUser(Resource):
    """The user of a token. Profile.as_json in `domain/accounts/profiles.py` writes it."""

    id: int
    username: str
    name: str
    state: Literal["active"]
    email: str
    public_email: None
    avatar_url: None
    web_url: str
    created_at: Time
    last_sign_in_at: Time | None
    #: Only of administrators.
    is_admin: Literal[True] = True


class PersonalData(Resource):
    """Everything that is stored about a person, by table, without secrets."""

    model_config = ConfigDict(extra="allow")


class ErasureBody(Body):
    """What becomes of the applications of a person who is deleted: one of the two."""

    #: The user name or e-mail address of their next owner.
    applications_to: Text = ""
    delete_applications: bool = False
