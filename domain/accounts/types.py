"""Users, and the personal data of one."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from domain.accounts.email_addresses import WaitingAddress
from domain.core.types.base import (
    AbsentFlag,
    AbsentWord,
    Body,
    GitLabQuery,
    GivenTimeOrDay,
    OffsetQuery,
    Option,
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
    created_after: GivenTimeOrDay | None = None
    created_before: GivenTimeOrDay | None = None
    #: This and the next two are for administrators.
    admins: bool = False
    #: Who is a member of no project and no group.
    without_projects: bool = False
    two_factor: Literal["enabled", "disabled"] | None = None
    order_by: Literal["id", "name", "username", "created_at", "updated_at"] = "id"
    auditors: AbsentFlag = False
    external: AbsentFlag = False
    #: For administrators; others find nothing by it.
    extern_uid: Text = Field(default="", description="The `sub` at an identity provider.")
    provider: Text = Field(
        default="", description="Slug of the identity provider, together with `extern_uid`."
    )
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
    def is_active(self) -> bool | None:
        """Whether the accounts are to be active."""
        return _chosen(self.active, self.exclude_active)

    @property
    def is_blocked(self) -> bool | None:
        """Whether the accounts are to be locked."""
        return self.blocked or None

    @property
    def is_human(self) -> bool | None:
        """Whether the accounts are to be those of people."""
        return _chosen(self.humans or self.without_project_bots, self.exclude_humans)

    @property
    def is_admin(self) -> bool | None:
        """Whether the accounts are to be those of administrators."""
        return self.admins or None

    @property
    def identity(self) -> tuple[str, str] | None:
        """The subject and the slug of an account at an identity provider."""
        return (self.extern_uid, self.provider) if self.extern_uid else None

    @property
    def has_projects(self) -> bool | None:
        """Whether the users are to be members of a project or a group."""
        return False if self.without_projects else None

    @property
    def has_second_factor(self) -> bool | None:
        """Whether the accounts are to have a second factor."""
        return None if self.two_factor is None else self.two_factor == "enabled"


def _chosen(wanted: bool, unwanted: bool) -> bool | None:  # noqa: FBT001 - two parameters of a list
    """Return which side of a condition two parameters ask for, or None for both."""
    return wanted if wanted or unwanted else None


AccountState = Literal["active", "blocked", "blocked_pending_approval", "deactivated"]


class User(Resource):
    """A user, as shown to other users."""

    id: int
    username: str
    name: str
    #: `blocked` for an account that an administrator locked.
    state: AccountState
    public_email: None
    avatar_url: str
    web_url: str
    bot: bool
    created_at: Time


class AccountIdentity(Resource):
    """An account at an identity provider, which signs the user in."""

    #: The slug of the identity provider.
    provider: str
    #: The subject: what tells accounts there from each other.
    extern_uid: str


class AccountFields(User):
    """What administrators see of every account."""

    email: str
    #: When it was shown that the e-mail address is theirs; null if it never was.
    confirmed_at: Time | None
    is_admin: bool
    last_sign_in_at: Time | None
    two_factor_enabled: bool
    #: By its name in the IANA database, such as Europe/Berlin.
    time_zone: str


class ListedAccount(AccountFields):
    """A user in the list of administrators."""

    must_change_password: bool


class Account(AccountFields):
    """A user, as shown to administrators."""

    identities: list[AccountIdentity]


class AccountPage(Account):
    """A user on the page for administrators."""

    must_change_password: bool
    password_changed_at: Time | None
    #: The number of live sign-ins.
    open_sign_ins: int
    #: The new e-mail address, or that of the account, while it waits to be confirmed.
    waiting_address: WaitingAddress | None


class NewAccount(Account, SecretResource):
    """A new user with a password that the service made, which is shown once."""

    generated_password: str


class ResetAccount(Account, SecretResource):
    """A user whose password was replaced, with the new one, which is shown once."""

    password: str


class PasswordResetBody(Body):
    """What is kept when a password is replaced: browsers are signed out in any case."""

    keep_applications: bool = Field(default=False, description="Keep applications authorized.")
    revoke_tokens: bool = Field(default=False, description="Also revoke personal access tokens.")


class RemovedFactors(Resource):
    """Whether a user had second factors, which are removed."""

    username: str
    removed: bool


class AccountBody(Body):
    """A new user, who has to choose another password at the first sign-in."""

    username: RequiredText
    email: RequiredText
    name: str = Field(default="", description="The user name if it is empty.")
    #: One of the two.
    password: RequiredText | None = None
    force_random_password: bool = False
    admin: bool = False
    time_zone: RequiredText = "UTC"
    skip_confirmation: bool = Field(
        default=False,
        description="True to confirm the email address without a message. Otherwise a link to "
        "confirm it is sent there.",
    )


class OwnAccountBody(Body):
    """The account that somebody makes for an address that is theirs."""

    username: RequiredText
    name: Text = ""
    new_password: RequiredText


class ApprovalResult(Resource):
    """The response to an approval or a rejection."""

    message: Literal["Success"] = "Success"


class AccountChangeBody(Body):
    """Changes to a user."""

    username: RequiredText | None = Field(default=None, description="New user name.")
    name: Annotated[RequiredText | None, Option("--display-name")] = Field(
        default=None, description="New display name."
    )
    email: RequiredText | None = Field(default=None, description="New e-mail address.")
    time_zone: RequiredText | None = Field(
        default=None,
        description="Time zone of their pages and messages, such as Europe/Berlin.",
    )
    admin: bool | None = Field(default=None, description="True if the user is an administrator.")
    skip_confirmation: Annotated[bool, Option("--verified")] = Field(
        default=False,
        description="True to confirm the new email address without a message. Otherwise a link to "
        "confirm it is sent there.",
    )
    skip_reconfirmation: bool = Field(
        default=False, description="The same, by the name that clients written for GitLab send."
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_password(cls, given: Any) -> Any:
        """Refuse a password: whoever sends one relies on the former one being over."""
        if isinstance(given, Mapping) and "password" in given:
            raise ValueError("A password cannot be set here. Reset it on the page of the user.")
        return given

    @property
    def is_email_confirmed(self) -> bool:
        """Whether the administrator vouches for the e-mail address that the account has then."""
        return self.skip_confirmation or self.skip_reconfirmation


class NameBody(Body):
    """A display name."""

    name: RequiredText


class ProfileBody(NameBody):
    """What people change of their own account."""

    email: RequiredText
    time_zone: Text


class PasswordBody(Body):
    """A new password, and what ends with the former one."""

    new_password: RequiredText
    end_applications: bool = False
    revoke_tokens: bool = False


class SshKey(Resource):
    """An SSH key, as GitLab's clients know it; nobody has one here."""

    id: int
    title: str
    key: str
    created_at: Time
    expires_at: Time | None
    usage_type: str


class SshKeyQuery(OffsetQuery, GitLabQuery):
    """Which part of a list of SSH keys is asked for."""


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


class PersonalData(SecretResource):
    """Everything that is stored about a person, by table, without secrets."""

    model_config = ConfigDict(extra="allow")


class ErasureBody(Body):
    """What becomes of the applications of a person who is deleted: one of the two."""

    applications_to: Text = Field(
        default="", description="The user name or e-mail address of their next owner."
    )
    delete_applications: bool = Field(
        default=False, description="True to delete the applications of the user as well."
    )


class Erased(Resource):
    """The result of an erasure."""

    user_id: int
    #: The pseudonym in lists and events.
    pseudonym: str
    applications_handed_on: int
    applications_deleted: int
    #: Those of the personal namespace.
    projects_deleted: int
