"""Actions: the operations of the domain that pages, the API and commands call.

    @action("silences.create")
    def create_silence(work: UnitOfWork, project: ProjectView, new: NewSilence) -> Silence:

Each action has a row in the permission table (`domain/access/permissions.py`). A call first checks
the permission of the actor and the state of the project. The action's own code then validates,
stores and records the change. The parameters of an action are:

- the unit of work
- the project or group to which its permission applies
- the variables in its URL
- a request body or query

API views (`web/api/operations.py`) and commands (`web/commands/action_commands.py`) are generated
from actions.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, update_wrapper
from inspect import Parameter, getdoc, signature
from types import ModuleType, UnionType
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from domain.access.actor import AccessMethod, UnitOfWork
from domain.access.checks import TargetView, check_permission, check_project_state
from domain.access.permissions import PermissionTarget, get_permission
from domain.core.errors import DomainError
from domain.core.types.base import Body, Query, Resource
from domain.core.types.pagination import ListPage

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
#: Command names that differ from the verb in the permission table.
_COMMANDS_BY_VERB = {"index": "list", "edit": "change"}


class Action(Generic[Parameters, Result]):
    """A domain function with its permission, parameters and result type."""

    def __init__(
        self,
        name: str,
        perform: Callable[Concatenate[UnitOfWork, Parameters], Result],
        *,
        changes: bool,
        command: str = "",
        alias: str = "",
        plural: str = "",
    ) -> None:
        """Create an action from a function and its name in the permission table."""
        self.name = name
        self.room, _, self.verb = name.partition(".")
        self.permission = get_permission(name)
        self.changes = changes
        #: Command name: `list`, `show`, `create`, `change`, `delete` or another verb.
        self.command = command or _COMMANDS_BY_VERB.get(self.verb, self.verb.replace("_", "-"))
        #: Previous name of the command, which is still accepted.
        self.alias = alias
        #: Plural noun for the listed items on the command line.
        self.plural = plural or (self.room if self.command == "list" else self.verb)
        self._perform = perform
        update_wrapper(self, perform)

    def __call__(
        self, work: UnitOfWork, /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        """Check the actor's permission, and run the action.

        Raise ForbiddenError if the actor does not have the permission. Errors raised by the
        function are passed on.
        """
        target = self._get_target(args)
        check_permission(self.permission, work.actor, target)
        # Operators may read disabled parts of a project, but not change them.
        if target is not None and (self.changes or not work.actor.is_trusted):
            check_project_state(self.permission, self.room, target, changes=self.changes)
        try:
            return self._perform(work, *args, **kwargs)
        except DomainError:
            # A web page that displays an error commits its transaction. Therefore, changes made
            # before the error are rolled back here. Changes that must persist, such as counts of
            # failed attempts, have already been committed.
            if self.changes and work.actor.means is AccessMethod.PAGE:
                work.session.rollback()
            raise

    def _get_target(self, args: tuple[Any, ...]) -> TargetView | None:
        # The target is always the first argument after the unit of work.
        has_target = self.permission.target is not PermissionTarget.INSTANCE
        return args[0] if has_target else None

    @property
    def summary(self) -> str:
        """The first line of the docstring, for the API description and for command help."""
        return (getdoc(self._perform) or "").partition("\n")[0]

    @cached_property
    def input_type(self) -> type[Body] | type[Query] | None:
        """The type of the body or query, if the action has one."""
        return next(iter(self._input_models.values()), None)

    @property
    def input_name(self) -> str | None:
        """The name of the parameter for the body or query, or None."""
        return next(iter(self._input_models), None)

    @cached_property
    def url_variables(self) -> Mapping[str, type]:
        """The types of the URL variables, by name."""
        skipped = 1 if self.permission.target is PermissionTarget.INSTANCE else 2
        names = list(signature(self._perform).parameters)[skipped:]
        hints = self._perform_type_hints
        return {name: hints[name] for name in names if name not in self._input_models}

    @property
    def target_name(self) -> str | None:
        """The name of the parameter for the project or group, or None."""
        if self.permission.target is PermissionTarget.INSTANCE:
            return None
        return list(signature(self._perform).parameters)[1]

    @cached_property
    def is_list(self) -> bool:
        """True if the action returns one page of a list."""
        return get_origin(self._perform_type_hints["return"]) is ListPage

    @cached_property
    def result_type(self) -> Any:
        """The result type, the item type of a list, or None if the action returns nothing."""
        hint = self._perform_type_hints["return"]
        if self.is_list:
            return get_args(hint)[0]
        return None if hint is type(None) else hint

    @property
    def is_available_to_api(self) -> bool:
        """True if the API and commands can run the action.

        They can run actions that return a resource or nothing.
        """
        is_union = isinstance(self.result_type, UnionType)
        kinds = get_args(self.result_type) if is_union else (self.result_type,)
        return all(each is None or _is_subclass_of(each, Resource) for each in kinds)

    @cached_property
    def _perform_type_hints(self) -> Mapping[str, Any]:
        return get_type_hints(self._perform)

    @cached_property
    def _input_models(self) -> Mapping[str, Any]:
        names = signature(self._perform).parameters
        return {
            name: hint
            for name in names
            if _is_subclass_of(hint := self._perform_type_hints[name], Body, Query)
        }

    @property
    def parameters(self) -> list[Parameter]:
        """The parameters of the function, except the unit of work."""
        return list(signature(self._perform).parameters.values())[1:]


def _is_subclass_of(hint: Any, *bases: type) -> bool:
    return isinstance(hint, type) and issubclass(hint, bases)


def list_actions(module: ModuleType, room: str) -> list[Action[Any, Any]]:
    """Return the operations in a module for one resource of the permission table."""
    found = (each for each in vars(module).values() if isinstance(each, Action))
    return [each for each in found if each.room == room and each.is_available_to_api]


class ActionDecorator(Protocol):
    """A decorator that turns a function into an action."""

    def __call__(
        self, perform: Callable[Concatenate[UnitOfWork, Parameters], Result], /
    ) -> Action[Parameters, Result]:
        """Return the action that runs a function."""


def action(name: str, *, command: str = "", alias: str = "") -> ActionDecorator:
    """Return a decorator for an action that makes changes."""
    return _build_decorator(name, changes=True, command=command, alias=alias)


def read_action(name: str, *, command: str = "", plural: str = "") -> ActionDecorator:
    """Return a decorator for an action that makes no changes."""
    return _build_decorator(name, changes=False, command=command, plural=plural)


def _build_decorator(name: str, *, changes: bool, **words: str) -> ActionDecorator:
    def decorate(
        perform: Callable[Concatenate[UnitOfWork, Parameters], Result], /
    ) -> Action[Parameters, Result]:
        return Action(name, perform, changes=changes, **words)

    return decorate
