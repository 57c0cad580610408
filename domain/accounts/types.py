"""API types for users and their personal data."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from domain.accounts.email_addresses import UnconfirmedAddress
from domain.core.types.base import (
    AbsentFlag,
    AbsentWord,
    Body,
    GitLabQuery,
    Option,
    RequestTimeOrDay,
    RequiredText,
    Resource,
    Search,
    SecretResource,
    Text,
    Time,
    WithoutEffect,
)
from domain.core.types.pagination import OffsetQuery, PagedQuery


class UserQuery(PagedQuery, GitLabQuery):
    """Filters of a user list. From release 17.0, the list always uses keyset pagination."""

    username: Text = ""
    #: Words in the name or username. For administrators, email addresses are searched as well.
    search: Search = ""
    active: bool = False
    blocked: bool = False
    humans: bool = False
    without_project_bots: bool = False
    exclude_active: bool = False
    exclude_humans: bool = False
    created_after: RequestTimeOrDay | None = None
    created_before: RequestTimeOrDay | None = None
    #: True if only administrators are listed. Only administrators can use this filter and the
    #: next two.
    admins: bool = False
    #: True if only users without any membership are listed.
    without_projects: bool = False
    two_factor: Literal["enabled", "disabled"] | None = None
    order_by: Literal["id", "name", "username", "created_at", "updated_at"] = "id"
    auditors: AbsentFlag = False
    external: AbsentFlag = False
    #: Subject at an identity provider. Users who are not administrators receive an empty list.
    extern_uid: Text = Field(
        default="", description="Subject (`sub`) of the user at the identity provider."
    )
    provider: Text = Field(
        default="", description="Slug of the identity provider. Used with `extern_uid`."
    )
    public_email: AbsentWord = ""
    saml_provider_id: AbsentWord = ""
    #: Ignored parameters, since there are no internal, external or LDAP users.
    exclude_external: WithoutEffect = ""
    exclude_internal: WithoutEffect = ""
    skip_ldap: WithoutEffect = ""
    with_custom_attributes: WithoutEffect = ""

    @property
    def is_for_administrators(self) -> bool:
        """True if only administrators may use the query."""
        return self.admins or self.without_projects or self.two_factor is not None

    @property
    def is_active(self) -> bool | None:
        """True to list active accounts, False to list all other accounts, None to list both."""
        return _combine_flags(self.active, self.exclude_active)

    @property
    def is_blocked(self) -> bool | None:
        """True to list locked accounts, None to list all accounts."""
        return self.blocked or None

    @property
    def is_human(self) -> bool | None:
        """True to list accounts of people, False to list all other accounts, None to list both."""
        return _combine_flags(self.humans or self.without_project_bots, self.exclude_humans)

    @property
    def is_admin(self) -> bool | None:
        """True to list administrators, None to list all users."""
        return self.admins or None

    @property
    def identity(self) -> tuple[str, str] | None:
        """The subject and the provider's slug of an identity to search for, or None."""
        return (self.extern_uid, self.provider) if self.extern_uid else None

    @property
    def has_projects(self) -> bool | None:
        """False to list users without memberships, None to list all users."""
        return False if self.without_projects else None

    @property
    def has_second_factor(self) -> bool | None:
        """True to list accounts with a second factor, False to list others, None to list both."""
        return None if self.two_factor is None else self.two_factor == "enabled"


def _combine_flags(flag_value: bool, unwanted: bool) -> bool | None:  # noqa: FBT001 - two parameters of a list
    """Return True if `flag_value` is set, False if only `unwanted` is set, and None otherwise."""
    return flag_value if flag_value or unwanted else None


AccountState = Literal["active", "blocked", "blocked_pending_approval", "deactivated"]


class User(Resource):
    """A user, as shown to other users."""

    id: int
    username: str
    name: str
    #: State of the account. `blocked` if an administrator locked it.
    state: AccountState
    public_email: None
    avatar_url: str
    web_url: str
    bot: bool
    created_at: Time


class AccountIdentity(Resource):
    """An account at an identity provider through which the user signs in."""

    #: Slug of the identity provider.
    provider: str
    #: Subject that identifies the account at the provider.
    extern_uid: str


class AccountFields(User):
    """Fields of every account that administrators see."""

    email: str
    #: Time at which the email address was confirmed; null if it is not confirmed.
    confirmed_at: Time | None
    is_admin: bool
    last_sign_in_at: Time | None
    two_factor_enabled: bool
    #: Time zone name in the IANA database, such as Europe/Berlin.
    time_zone: str


class ListedAccount(AccountFields):
    """A user in the administrators' list."""

    must_change_password: bool


class Account(AccountFields):
    """A user, as shown to administrators."""

    identities: list[AccountIdentity]


class AccountDetails(Account):
    """A user, as shown on the user's page for administrators."""

    must_change_password: bool
    password_changed_at: Time | None
    #: Number of active sign-ins.
    open_sign_ins: int
    #: Email address that is not confirmed yet; null if there is none.
    waiting_address: UnconfirmedAddress | None


class NewAccount(Account, SecretResource):
    """A new user with a generated password, which is shown once."""

    generated_password: str


class ResetAccount(Account, SecretResource):
    """A user with a new password, which is shown once."""

    password: str


class PasswordResetBody(Body):
    """The access that a password reset revokes.

    Browsers are always signed out.
    """

    keep_applications: bool = Field(
        default=False, description="Keep the authorizations of applications."
    )
    revoke_tokens: bool = Field(default=False, description="Also revoke personal access tokens.")


class FactorRemovalResult(Resource):
    """The response to a request to remove a user's second factors."""

    username: str
    removed: bool


class AccountBody(Body):
    """A new user, who has to change the password at the first sign-in."""

    username: RequiredText
    email: RequiredText
    name: str = Field(default="", description="Display name. The default is the username.")
    #: Password. Either this field or `force_random_password` is required.
    password: RequiredText | None = None
    force_random_password: bool = False
    admin: bool = False
    time_zone: RequiredText = "UTC"
    skip_confirmation: bool = Field(
        default=False,
        description="True to confirm the email address immediately. Otherwise, a confirmation link "
        "is sent to the address.",
    )


class OwnAccountBody(Body):
    """The account of a person who signs up with a verified address."""

    username: RequiredText
    name: Text = ""
    new_password: RequiredText


class ApprovalResult(Resource):
    """The response to an approval or a rejection."""

    message: Literal["Success"] = "Success"


class AccountChangeBody(Body):
    """Changes that an administrator makes to a user."""

    username: RequiredText | None = Field(default=None, description="New username.")
    name: Annotated[RequiredText | None, Option("--display-name")] = Field(
        default=None, description="New display name."
    )
    email: RequiredText | None = Field(default=None, description="New email address.")
    time_zone: RequiredText | None = Field(
        default=None,
        description="Time zone for pages and messages to the user, such as Europe/Berlin.",
    )
    admin: bool | None = Field(
        default=None,
        description=(
            "True to make the user an administrator. False to remove the administrator role."
        ),
    )
    skip_confirmation: Annotated[bool, Option("--verified")] = Field(
        default=False,
        description="True to confirm the new email address immediately. Otherwise, a confirmation "
        "link is sent to the address.",
    )
    skip_reconfirmation: bool = Field(
        default=False, description="Same as `skip_confirmation`, for compatibility with GitLab."
    )

    @model_validator(mode="before")
    @classmethod
    def _reject_password(cls, given: Any) -> Any:
        """Reject a password, because clients would assume that it replaces the current password."""
        if isinstance(given, Mapping) and "password" in given:
            message = "`password` cannot be changed. Reset the password of the user instead."
            raise ValueError(message)
        return given

    @property
    def is_email_confirmed(self) -> bool:
        """True if the administrator has confirmed the resulting email address."""
        return self.skip_confirmation or self.skip_reconfirmation


class NameBody(Body):
    """The new display name of a user."""

    name: RequiredText


class ProfileBody(NameBody):
    """Changes that users make to their own accounts."""

    email: RequiredText
    time_zone: Text


class PasswordBody(Body):
    """A new password, and the access to revoke."""

    new_password: RequiredText
    end_applications: bool = False
    revoke_tokens: bool = False


class SshKey(Resource):
    """An SSH key in GitLab's format. Lists are empty, because Gatebell has no SSH keys."""

    id: int
    title: str
    key: str
    created_at: Time
    expires_at: Time | None
    usage_type: str


class SshKeyQuery(OffsetQuery, GitLabQuery):
    """Pagination of a list of SSH keys."""


class CurrentUser(Resource):
    """The user that a token belongs to."""

    id: int
    username: str
    name: str
    state: Literal["active"]
    email: str
    public_email: None
    avatar_url: str
    web_url: str
    created_at: Time
    #: Time at which the email address was confirmed; null if it is not confirmed.
    confirmed_at: Time | None
    last_sign_in_at: Time | None
    #: True if the user is an administrator. Omitted for other users.
    is_admin: Literal[True] = True


class PersonalData(SecretResource):
    """All stored data about a person except secrets, by table."""

    model_config = ConfigDict(extra="allow")


class ErasureBody(Body):
    """Handling of a deleted user's applications. Only one of the fields can be used."""

    applications_to: Text = Field(
        default="", description="Username or email address of the new owner of the applications."
    )
    delete_applications: bool = Field(
        default=False, description="True to delete the applications of the user as well."
    )


class ErasureResult(Resource):
    """The pseudonym of an erased user, and the numbers of transferred and deleted objects."""

    user_id: int
    #: Pseudonym of the user in lists and events.
    pseudonym: str
    applications_handed_on: int
    applications_deleted: int
    #: Number of deleted projects in the personal namespace.
    projects_deleted: int
