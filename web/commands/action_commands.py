"""Commands generated from actions, such as `gatebell silences create PROJECT --for 2h`.

A command's arguments are the path of the project or group and the URL variables. A username
replaces a user ID. Fields of the body or query become options, or arguments if their types declare
them as arguments. Commands run in this process as the operator and print the API's response.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Annotated, Any, cast

import click
from flask.cli import AppGroup
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from domain.access.actions import Action, list_actions
from domain.access.actor import UnitOfWork
from domain.access.permissions import PermissionTarget
from domain.accounts.users import get_user
from domain.core.types.base import Argument, Option, Query, is_effective_parameter
from domain.core.types.pagination import KeysetQuery, ListPage, OffsetQuery, PagedQuery
from domain.core.types.validation import validate_body
from domain.projects.access import resolve_group
from domain.projects.views import GroupView, ProjectView
from web.commands.documentation.operator_help import get_help_text
from web.commands.execution import run_in_transaction
from web.commands.path_lookup import COMMAND_LINE_VIEWER, get_namespace_by_path, get_project_by_path
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work

_MAX_LISTED = 1_000
_PAGE_SIZE = 100
_DEFAULT_OPTION = Option("")
#: Maximum number of characters of a wrong value that an error quotes.
_MAX_QUOTED_LENGTH = 40
#: Suffix of the parameter names for flags that send null.
_NULL_SUFFIX = "__null"
#: Name of the URL variable that contains a user ID.
_USER_VARIABLE = "user_id"
#: Pagination parameters that commands do not offer, because a command prints several pages
#: together.
_PAGINATION_PARAMETERS = (
    PagedQuery.model_fields.keys() - {"order_by", "sort"} | KeysetQuery.model_fields.keys()
)


def build_command_group(name: str, places: str, help_text: str) -> click.Group:
    """Return a command group with a command for each matching action of the given modules.

    An action matches if its name in the table of permissions starts with the group's name, such as
    `silences.`. `places` contains the module paths, separated by commas. A module path can be
    followed by another prefix, as in `domain.paging.on_call.actions:on_call_schedules`.
    """
    group = AppGroup(name, help=help_text)
    for place in places.split(","):
        module, _, room = place.partition(":")
        for each in list_actions(import_module(module), (room or name).replace("-", "_")):
            group.add_command(build_command(each))
            if each.alias:
                group.add_command(build_command(each), each.alias)
    return group


def build_command(
    action: Action[Any, Any], *, is_for_user: bool = False, user_option: str = "", key: str = ""
) -> click.Command:
    """Return the command for an action.

    The first argument is a username if the action is for a user. With `user_option`, the username
    is a required option instead. `key` is the name of a list in the output, if it differs from the
    action's prefix.
    """

    @run_in_transaction
    def run(**given: Any) -> Mapping[str, Any]:
        unit = create_unit_of_work_for_user(given.pop("login")) if login else get_unit_of_work()
        done = _run_action(action, unit, given)
        return {key if key and name == action.room else name: each for name, each in done.items()}

    login: list[click.Parameter] = []
    if is_for_user:
        login = [click.Argument(["login"], metavar="USER")]
    if user_option:
        help_text = "User who becomes the owner."
        login = [click.Option(["login", user_option], required=True, help=help_text)]
    params = [*login, *_list_command_parameters(action)]
    return click.Command(action.command, callback=run, params=params, help=_build_help(action))


def _build_help(action: Action[Any, Any]) -> str:
    summary = get_help_text(action.name) or action.summary
    if action.is_list:
        return f"{summary} At most {_MAX_LISTED:,} entries are printed."
    if action.command in {"change", "set"}:
        return f"{summary} Omitted options keep their values."
    return summary


def create_unit_of_work_for_user(login: str) -> UnitOfWork:
    """Return a unit of work in which the operator acts for a user."""
    unit = get_unit_of_work()
    user = get_user(login, session=unit.session)
    return replace(unit, actor=replace(unit.actor, id=user.id))


def _list_command_parameters(action: Action[Any, Any]) -> Iterator[click.Parameter]:
    if action.target_name is not None:
        is_either = action.permission.target is PermissionTarget.NAMESPACE
        metavar = "PROJECT-OR-GROUP" if is_either else action.target_name.upper()
        yield click.Argument(["target"], metavar=metavar)
    last = [*action.url_variables][-1:]
    yield from (
        _build_variable_argument(name, kind, is_last=name in last)
        for name, kind in action.url_variables.items()
    )
    if action.input_type is not None:
        for name, field in action.input_type.model_fields.items():
            is_hidden = action.is_list and (
                name in _PAGINATION_PARAMETERS or "const" in _get_field_schema(field)
            )
            if is_effective_parameter(field) and not is_hidden:
                yield from _list_field_params(name, field, words=get_help_text(action.name, name))
        yield from _list_page_options(action.input_type)


def _list_page_options(takes: type[BaseModel]) -> Iterator[click.Option]:
    """Yield the option that selects a page of a list, by cursor or by number."""
    if issubclass(takes, KeysetQuery):
        yield click.Option(
            ["--cursor"], help="Value of next_cursor in the previous output, for the next entries."
        )
    if issubclass(takes, OffsetQuery):
        yield click.Option(
            ["--page"],
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help=f"Page number. A page has {_MAX_LISTED:,} entries.",
        )


def _build_variable_argument(name: str, kind: type, *, is_last: bool) -> click.Argument:
    """Return the command-line argument for a URL variable, such as ID for `silence_id`."""
    if name == _USER_VARIABLE:
        return click.Argument([name], metavar="USER")
    # In `gatebell silences`, `silence_id` is displayed as ID. Variables of parent resources keep
    # their names.
    word = "ID" if is_last and name.endswith("_id") else name.removesuffix("_id").upper()
    if kind in {int, str}:
        return click.Argument([name], type=kind, metavar=word)
    return click.Argument([name], metavar=f"NAME-OR-{word}")


def _list_field_params(name: str, field: FieldInfo, *, words: str) -> Iterator[click.Parameter]:
    """Yield the argument for a field, or its option and the flag that sends null instead.

    If `words` is not empty, it replaces the description of the field.
    """
    for each in field.metadata:
        if isinstance(each, Argument):
            yield click.Argument([name], required=field.is_required(), metavar=each.name)
            return
    said = _find_option_spec(field)
    yield _build_option(name, field, said, words=words)
    if said.null:
        help_text = f"Set no value, instead of {said.words}."
        yield click.Option(
            [name + _NULL_SUFFIX, said.null], is_flag=True, default=None, help=help_text
        )


def _find_option_spec(field: FieldInfo) -> Option:
    return next((each for each in field.metadata if isinstance(each, Option)), _DEFAULT_OPTION)


def _build_option(name: str, field: FieldInfo, option: Option, *, words: str) -> click.Option:
    schema = _get_field_schema(field)
    is_flag = schema.get("type") == "boolean"
    dashed = name.replace("_", "-")
    word = option.words or (f"--{dashed}/--no-{dashed}" if is_flag else f"--{dashed}")
    is_mapping = _is_mapping(schema)
    is_many = schema.get("type") == "array" or is_mapping
    is_required = field.is_required() and not option.null
    # Without this default, omitted flags would be false. Required options have no default, because
    # a default would satisfy them.
    usual: dict[str, Any] = {} if is_required else {"default": None}
    return click.Option(
        [name, word, *([option.former] if option.former else [])],
        required=is_required,
        **usual,
        # Names such as `--on/--off` already imply that the option takes no value.
        is_flag=True if is_flag and "/" not in word else None,
        multiple=is_many,
        type=None if is_flag else _get_param_type(schema.get("items", schema)),
        callback=collect_pairs if is_mapping else None,
        help=_build_option_help(field, words or field.description or "", is_many=is_many),
    )


def _build_option_help(field: FieldInfo, words: str, *, is_many: bool) -> str | None:
    usual = field.default if isinstance(field.default, str | int) else None
    parts = (
        words.replace("`", ""),
        "Can be repeated." if is_many else "",
        f"[default: {usual}]" if usual and usual is not True else "",
    )
    return " ".join(filter(None, parts)) or None


def _get_field_schema(field: FieldInfo) -> dict[str, Any]:
    """Return the JSON schema of a field without null.

    If a field accepts several types, return the schema of its list type or its text type.
    """
    hint: Any = field.annotation
    if field.metadata:
        hint = Annotated[hint, *field.metadata]
    schema = TypeAdapter(hint).json_schema()
    known = schema.get("$defs", {})
    choices = [_resolve_reference(each, known) for each in schema.get("anyOf", [schema])]
    choices = [each for each in choices if each.get("type") != "null"]
    # Fields that accept a number or a string, such as durations, are strings in commands.
    wide = [each for each in choices if each.get("type") == "array"]
    texts = [each for each in choices if each.get("type") == "string"]
    return (wide or texts or choices)[0]


def _resolve_reference(schema: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = known.get(schema.get("$ref", "").rpartition("/")[2], schema)
    return found


def _is_mapping(schema: Mapping[str, Any]) -> bool:
    """Return whether a JSON schema describes an object with arbitrary keys."""
    return schema.get("type") == "object" and not schema.get("properties")


class PairType(click.ParamType[tuple[str, str]]):
    """Click parameter type for a name and a value, such as `severity=high`."""

    name = "name=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split a value at the first equals sign."""
        name, _, given = value.partition("=")
        if not (name and given):
            self.fail(f"`{value[:_MAX_QUOTED_LENGTH]}` is not in the form NAME=VALUE.", param, ctx)
        return name, given


def collect_pairs(
    _context: click.Context, _option: click.Parameter, given: Sequence[tuple[str, str]] | None
) -> dict[str, str] | None:
    """Return the values of a repeated option by name, or None if it is omitted."""
    return dict(given) if given else None


def _get_param_type(schema: Mapping[str, Any]) -> click.ParamType[Any]:
    """Return the type with which click validates and completes a value.

    Actions validate everything else.
    """
    if "enum" in schema:
        return click.Choice(schema["enum"])
    if schema.get("type") == "integer" and not schema.keys() & {"minimum", "maximum"}:
        return click.INT
    if schema.get("type") == "integer":
        return click.IntRange(schema.get("minimum"), schema.get("maximum"))
    return PairType() if _is_mapping(schema) else click.STRING


def _run_action(
    action: Action[Any, Any], unit: UnitOfWork, given_values: dict[str, Any]
) -> Mapping[str, Any]:
    arguments: list[Any] = []
    if action.target_name is not None:
        arguments.append(_get_target(action, given_values.pop("target")))
    for name in action.url_variables:
        value = given_values.pop(name)
        arguments.append(
            get_user(value, session=unit.session).id if name == _USER_VARIABLE else value
        )
    sent = _collect_sent_fields(action, given_values)
    if action.is_list:
        return _collect_list_items(action, unit, arguments, sent)
    if action.input_type is not None:
        arguments.append(validate_body(action.input_type, sent))
    returned = action(unit, *arguments)
    done = {"deleted": True} if action.command == "delete" else {}
    return {**(returned.model_dump(mode="json") if returned else {}), **done}


def _collect_sent_fields(
    action: Action[Any, Any], given_values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields that were set by options and flags.

    Raise UsageError if a field has both a value and the flag for null, or if a required field has
    neither.
    """
    sent = {name: value for name, value in given_values.items() if value not in (None, ())}
    for name, field in (action.input_type.model_fields if action.input_type else {}).items():
        null, said = name + _NULL_SUFFIX, _find_option_spec(field)
        if null in sent and name in sent:
            message = f"Use either '{said.words}' or '{said.null}', not both."
            raise click.UsageError(message)
        if sent.pop(null, None):
            sent[name] = None
        if said.null and field.is_required() and name not in sent:
            raise click.UsageError(f"Missing option '{said.words}' or '{said.null}'.")
    return sent


def _get_target(action: Action[Any, Any], path: str) -> ProjectView | GroupView:
    if action.permission.target is PermissionTarget.PROJECT:
        return get_project_by_path(path)
    if action.permission.target is PermissionTarget.GROUP:
        return resolve_group(path, COMMAND_LINE_VIEWER, session=db.session())
    return get_namespace_by_path(path)


def _collect_list_items(
    action: Action[Any, Any], unit: UnitOfWork, arguments: list[Any], sent: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return up to 1,000 items of a list, with the total or with the next cursor."""
    items: list[Any] = []
    query = cast("type[Query]", action.input_type)
    sent = dict(sent)
    total, cursor, part = None, None, _build_first_page_request(query, sent.pop("page", 1))
    while part is not None:
        found: ListPage[Any] = action(unit, *arguments, validate_body(query, {**sent, **part}))
        items += [each.model_dump(mode="json") for each in found.items]
        total, cursor = found.total, found.next_cursor
        part = _find_next_page_request(part, found, len(items))
    if total is None and cursor:
        return {action.plural: items, "next_cursor": cursor}
    return {action.plural: items, "total": len(items) if total is None else total}


def _build_first_page_request(query: type[Query], page: int) -> dict[str, Any] | None:
    """Return the parameters of the first API request for a page of 1,000 entries."""
    first = (page - 1) * _MAX_LISTED // _PAGE_SIZE + 1
    return {"per_page": _PAGE_SIZE, **({"page": first} if issubclass(query, OffsetQuery) else {})}


def _find_next_page_request(
    part: dict[str, Any], list_page: ListPage[Any], read: int
) -> dict[str, Any] | None:
    if read >= _MAX_LISTED:
        return None
    if list_page.next_cursor:
        return {**part, "cursor": list_page.next_cursor}
    if list_page.total is not None and part["page"] * _PAGE_SIZE < list_page.total:
        return {**part, "page": part["page"] + 1}
    return None
