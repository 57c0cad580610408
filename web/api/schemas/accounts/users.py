"""Users, and the personal data of one."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, model_validator

from domain.accounts import directory as domain
from domain.accounts.administration import AccountChange, AccountDetails
from domain.accounts.avatars import avatar_url
from domain.accounts.directory import PublicUser, UserFilter
from domain.accounts.profiles import profile_path
from domain.errors import QueryError
from domain.types.base import (
    AbsentFlag,
    AbsentWord,
    Body,
    GitLabQuery,
    GivenTime,
    PagedQuery,
    RequiredText,
    Resource,
    Search,
    SecretResource,
    Text,
    Time,
    WithoutEffect,
)


class UserQuery(PagedQuery, GitLabQuery):
    """Which users a list has. From release 17.0 on its pages are by key, asked for or not."""

    username: Text = ""
    #: Words of the name or user name; for administrators of the e-mail address as well.
    search: Search = ""
    active: bool = False
    blocked: bool = False
    humans: bool = False
    without_project_bots: bool = False
    exclude_active: bool = False
    exclude_humans: bool = False
    created_after: GivenTime | None = None
    created_before: GivenTime | None = None
    #: This and the next two are for administrators.
    admins: bool = False
    #: Who is a member of no project and no group.
    without_projects: bool = False
    two_factor: Literal["enabled", "disabled"] | None = None
    order_by: Literal["id", "name", "username", "created_at", "updated_at"] = "id"
    auditors: AbsentFlag = False
    external: AbsentFlag = False
    extern_uid: AbsentWord = ""
    provider: WithoutEffect = ""
    public_email: AbsentWord = ""
    saml_provider_id: AbsentWord = ""
    #: Nobody here is internal or external, or comes from LDAP: nobody is left out.
    exclude_external: WithoutEffect = ""
    exclude_internal: WithoutEffect = ""
    skip_ldap: WithoutEffect = ""
    with_custom_attributes: WithoutEffect = ""

    @property
    def is_for_administrators(self) -> bool:
        """Whether only administrators may ask this."""
        return self.admins or self.without_projects or self.two_factor is not None

    @property
    def wanted(self) -> UserFilter:
        """The filter; raises QueryError for one that contradicts itself."""
        if self.active and self.blocked:
            message = "active, blocked are mutually exclusive"
            raise QueryError(message, field="blocked")
        return UserFilter(
            username=self.username or None,
            search=self.search,
            is_active=_chosen(self.active, self.blocked or self.exclude_active),
            is_human=_chosen(self.humans or self.without_project_bots, self.exclude_humans),
            has_projects=False if self.without_projects else None,
            created_after=self.created_after,
            created_before=self.created_before,
            is_admin=self.admins or None,
            has_second_factor=None if self.two_factor is None else self.two_factor == "enabled",
        )


def _chosen(wanted: bool, unwanted: bool) -> bool | None:  # noqa: FBT001 - two parameters of a list
    """Return which side of a condition two parameters ask for, or None for both."""
    return wanted if wanted or unwanted else None


class User(Resource):
    """A user, as shown to other users."""

    id: int
    username: str
    name: str
    #: `blocked` for an account that an administrator locked.
    state: Literal["active", "blocked"]
    public_email: None
    avatar_url: str
    web_url: str
    bot: bool
    created_at: Time

    @classmethod
    def of(cls, view: PublicUser, *, base_url: str) -> "User":
        """Present a user to all others."""
        return cls(**_public_fields(view, base_url))


class Account(User):
    """A user, as shown to administrators."""

    email: str
    #: When it was shown that the e-mail address is theirs; null if it never was.
    confirmed_at: Time | None
    is_admin: bool
    last_sign_in_at: Time | None
    two_factor_enabled: bool
    #: By its name in the IANA database, such as Europe/Berlin.
    time_zone: str

    @classmethod
    def of_account(cls, view: domain.Account, *, base_url: str) -> "Account":
        """Present a user to administrators."""
        return cls(**_account_fields(view, base_url))


class NewAccount(Account, SecretResource):
    """A new user with a password that the service made, which is shown once."""

    generated_password: str

    @classmethod
    def with_password(cls, view: domain.Account, password: str, *, base_url: str) -> "NewAccount":
        """Present a user whose password was made just now."""
        return cls(**_account_fields(view, base_url), generated_password=password)


class AccountBody(Body):
    """A new user, who has to choose another password at the first sign-in."""

    username: RequiredText
    email: RequiredText
    #: The user name if it is empty.
    name: str = ""
    #: One of the two.
    password: RequiredText | None = None
    force_random_password: bool = False
    admin: bool = False
    time_zone: RequiredText = "UTC"
    #: Vouches for the e-mail address; otherwise a link to confirm it is sent there.
    skip_confirmation: bool = False

    @property
    def details(self) -> AccountDetails:
        """The fields of the new account."""
        return AccountDetails(
            username=self.username,
            email=self.email,
            name=self.name,
            is_admin=self.admin,
            time_zone=self.time_zone,
            is_email_confirmed=self.skip_confirmation,
        )


class AccountChangeBody(Body):
    """Changes to a user."""

    username: RequiredText | None = None
    name: RequiredText | None = None
    email: RequiredText | None = None
    time_zone: RequiredText | None = None
    admin: bool | None = None
    #: Vouches for the e-mail address; otherwise a link to confirm a new one is sent there.
    skip_confirmation: bool = False
    #: The same, by the name that GitLab's clients send.
    skip_reconfirmation: bool = False

    @model_validator(mode="before")
    @classmethod
    def _refuse_password(cls, given: Any) -> Any:
        """Refuse a password: whoever sends one relies on the former one being over."""
        if isinstance(given, Mapping) and "password" in given:
            message = "A password cannot be set here. Reset it on the page of the user."
            raise ValueError(message)
        return given

    @property
    def change(self) -> AccountChange:
        """The change; what is None stays as it is."""
        return AccountChange(
            username=self.username,
            name=self.name,
            email=self.email,
            time_zone=self.time_zone,
            is_admin=self.admin,
            is_email_confirmed=self.skip_confirmation or self.skip_reconfirmation,
        )


class NameBody(Body):
    """A display name."""

    name: RequiredText


class CurrentUser(Resource):
    """The user of a token. `Profile.as_json` in `domain/accounts/profiles.py` writes it."""

    id: int
    username: str
    name: str
    state: Literal["active"]
    email: str
    public_email: None
    avatar_url: str
    web_url: str
    created_at: Time
    #: When it was shown that the e-mail address is theirs; null if it never was.
    confirmed_at: Time | None
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


def _public_fields(view: PublicUser | domain.Account, base_url: str) -> dict[str, Any]:
    return {
        "id": view.id,
        "username": view.username,
        "name": view.name,
        "state": "active" if view.is_active else "blocked",
        "public_email": None,
        "avatar_url": avatar_url(view, base_url),
        "web_url": f"{base_url}{profile_path(view.username)}",
        "bot": view.is_bot,
        "created_at": view.created_at,
    }


def _account_fields(view: domain.Account, base_url: str) -> dict[str, Any]:
    return {
        **_public_fields(view, base_url),
        "email": view.email,
        "confirmed_at": view.email_confirmed_at,
        "is_admin": view.is_admin,
        "last_sign_in_at": view.last_sign_in_at,
        "two_factor_enabled": view.has_second_factor,
        "time_zone": view.time_zone,
    }
