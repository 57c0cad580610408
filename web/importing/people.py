"""The accounts of the people of an export, and what makes them reachable in a project."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from domain.access.roles import Role
from domain.accounts.administration import add_account, generate_password
from domain.accounts.names import as_segment
from domain.accounts.passwords import HashCost
from domain.accounts.users import NewUser, UserView, find_user
from domain.database.locks import release_locks
from domain.errors import DomainError
from domain.escalations.targets import who_may_be_paged
from domain.importing.plan import ImportedUser
from domain.projects.members import OPERATOR, add_member, record_joined
from domain.projects.views import ProjectView
from web.extensions import db
from web.http.work import work
from web.importing.report import Entry, Outcome
from web.services import now, settings
from web.settings.password_rules import password_rules

#: Of passwords that nobody will ever have.
_CHEAP = HashCost(memory_kib=64, passes=1)


@dataclass(frozen=True, kw_only=True)
class PeopleOptions:
    """What may be done for people who are missing."""

    #: Create accounts, and make them members.
    creates_users: bool = False
    #: Make accounts that are there members.
    adds_members: bool = False
    #: Whether everything is taken back in the end.
    is_trial: bool = False


@dataclass(kw_only=True)
class People:
    """The people of an export by their keys."""

    options: PeopleOptions
    entries: list[Entry] = field(default_factory=list)
    _accounts: dict[str, UserView] = field(default_factory=dict)
    _entries: dict[str, Entry] = field(default_factory=dict)
    _created: set[int] = field(default_factory=set)

    def find(self, users: Sequence[ImportedUser]) -> None:
        """Find the account of each, or create it."""
        for user in users:
            entry = Entry(kind="user", name=user.username or user.email, outcome=Outcome.EXISTS)
            account = self._account(user, entry)
            if account is not None:
                self._accounts[user.key] = account
                entry.details = {"username": account.username, **entry.details}
            self._entries[user.key] = entry
            self.entries.append(entry)

    def _account(self, user: ImportedUser, entry: Entry) -> UserView | None:
        session = db.session()
        by_email = find_user(user.email, session=session) if user.email else None
        if by_email is not None:
            return by_email
        by_name = find_user(user.username, session=session) if user.username else None
        if by_name is not None:
            if user.email:
                entry.notes.append(
                    f"Found by user name: the account has another e-mail address than {user.email}."
                )
            return by_name
        if self.options.creates_users:
            return self._create(user, entry)
        entry.outcome = Outcome.LEFT_OUT
        entry.notes.append("No account has this e-mail address: use --create-users.")
        return None

    def _create(self, user: ImportedUser, entry: Entry) -> UserView | None:
        username = as_segment(user.username)
        password = generate_password(username)
        new = NewUser(username=username, email=user.email, name=user.name[:200], password=password)
        session = db.session()
        rules = password_rules(settings())
        if self.options.is_trial:
            rules = replace(rules, cost=_CHEAP)
        else:
            release_locks(session)  # A password takes a while to hash.
        try:
            made = add_account(work(), new, rules)
        except (DomainError, ValueError) as error:
            entry.outcome = Outcome.LEFT_OUT
            entry.notes.append(str(error))
            return None
        entry.outcome = Outcome.CREATED
        entry.details["password"] = password
        self._created.add(made.id)
        return made

    def reachable(
        self, keys: Sequence[str], project: ProjectView, notes: list[str]
    ) -> list[UserView]:
        """Return those who can be on call and be paged in a project; notes say who cannot."""
        found = []
        for key in keys:
            account = self._accounts.get(key)
            if account is None:
                entry = self._entries.get(key)
                notes.append(f"{entry.name if entry else key} has no account.")
            elif self._can_be_paged(account, project) or self._join(key, account, project):
                found.append(account)
            else:
                notes.append(
                    f"{account.username} does not have the Developer role in {project.path}."
                )
        return found

    def _can_be_paged(self, account: UserView, project: ProjectView) -> bool:
        return account.id in who_may_be_paged(
            project.namespace, [account.id], session=db.session(), today=now().date()
        )

    def _join(self, key: str, account: UserView, project: ProjectView) -> bool:
        may = self.options.adds_members or account.id in self._created
        if not may:
            return False
        session, place = db.session(), project.namespace
        try:
            with session.begin_nested():
                member = add_member(
                    place, account.username, Role.DEVELOPER, by=OPERATOR, session=session, now=now()
                )
        except DomainError as error:
            self._entries[key].notes.append(str(error))
            return False
        record_joined(work(), place, member, Role.DEVELOPER)
        self._entries[key].notes.append(f"Added to {project.path} as a Developer.")
        return self._can_be_paged(account, project)
