"""Commands generated from actions, such as `gatebell silences create PROJECT --for 2h`.

Arguments are the path of the project or group and the variables of the URL; a user's id becomes the
user's name. Fields of the body or query become options, or arguments where their types declare it.
Commands run in this process as the operator and print the API's response.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Annotated, Any, cast

import click
from flask.cli import AppGroup
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from domain.access.actions import Action, operations_in
from domain.access.actor import Work
from domain.access.permissions import Target
from domain.accounts.users import get_user
from domain.core.types.base import (
    Argument,
    Found,
    KeysetQuery,
    OffsetQuery,
    Option,
    PagedQuery,
    Query,
    has_effect,
)
from domain.core.types.reading import read_body
from domain.projects.access import follow_to_group
from domain.projects.views import GroupView, ProjectView
from web.commands.operator_help import help_for
from web.commands.transaction import OPERATOR, holder_at, one_transaction, project_at
from web.extensions import db
from web.http.work import work

_MOST_LISTED = 1_000
_PER_PAGE = 100
_AS_NAMED = Option("")
#: Suffix of the name of a flag that sends null.
_NULL = "__null"
#: Name of the URL variable that holds a user's id.
_USER = "user_id"
#: Pagination parameters that commands omit, since they print several pages together.
_OF_PAGES = PagedQuery.model_fields.keys() - {"order_by", "sort"} | KeysetQuery.model_fields.keys()


def commands_of(name: str, places: str, help_text: str) -> click.Group:
    """Return a group of commands, with a command for each action of the given modules.

    An action belongs to the group if its name in the table of permissions starts with the group's
    name, such as `silences.`. A place may give another prefix, as in
    `domain.paging.on_call.actions:on_call_schedules`. Commas separate places.
    """
    group = AppGroup(name, help=help_text)
    for place in places.split(","):
        module, _, room = place.partition(":")
        for each in operations_in(import_module(module), (room or name).replace("-", "_")):
            group.add_command(command_of(each))
            if each.alias:
                group.add_command(command_of(each), each.alias)
    return group


def command_of(
    act: Action[Any, Any], *, is_for_user: bool = False, user_option: str = "", key: str = ""
) -> click.Command:
    """Return the command of an action, which takes a login first if it is for a user.

    With `user_option`, this required option holds the login instead. `key` is the name of a list in
    the output, if it differs from the action's prefix.
    """

    @one_transaction
    def run(**given: Any) -> Mapping[str, Any]:
        unit = work_for_user(given.pop("login")) if login else work()
        done = _carry_out(act, unit, given)
        return {key if key and name == act.room else name: each for name, each in done.items()}

    login: list[click.Parameter] = []
    if is_for_user:
        login = [click.Argument(["login"], metavar="USER")]
    if user_option:
        help_text = "User who becomes the owner."
        login = [click.Option(["login", user_option], required=True, help=help_text)]
    params = [*login, *_params(act)]
    return click.Command(act.command, callback=run, params=params, help=_help_of(act))


def _help_of(act: Action[Any, Any]) -> str:
    summary = help_for(act.name) or act.summary
    if act.is_list:
        return f"{summary} At most {_MOST_LISTED:,} entries are printed."
    if act.command in {"change", "set"}:
        return f"{summary} Omitted options keep their values."
    return summary


def work_for_user(login: str) -> Work:
    """Return a unit of work in which the operator acts for a user."""
    unit = work()
    user = get_user(login, session=unit.session)
    return replace(unit, actor=replace(unit.actor, id=user.id))


def _params(act: Action[Any, Any]) -> Iterator[click.Parameter]:
    if act.target_name is not None:
        is_either = act.permission.target is Target.NAMESPACE
        metavar = "PROJECT-OR-GROUP" if is_either else act.target_name.upper()
        yield click.Argument(["target"], metavar=metavar)
    last = [*act.variables][-1:]
    yield from (_variable(name, kind, is_last=name in last) for name, kind in act.variables.items())
    if act.takes is not None:
        for name, field in act.takes.model_fields.items():
            is_hidden = act.is_list and (name in _OF_PAGES or "const" in _schema(field))
            if has_effect(field) and not is_hidden:
                yield from _params_of(name, field, words=help_for(act.name, name))
        yield from _of_pages(act.takes)


def _of_pages(takes: type[BaseModel]) -> Iterator[click.Option]:
    """Yield the option for further entries of a list."""
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
            help=f"Page number. A page has {_MOST_LISTED:,} entries.",
        )


def _variable(name: str, kind: type, *, is_last: bool) -> click.Argument:
    """Return the argument for a URL variable."""
    if name == _USER:
        return click.Argument([name], metavar="USER")
    # In `gatebell silences`, `silence_id` is ID; variables of parent resources keep their name.
    word = "ID" if is_last and name.endswith("_id") else name.removesuffix("_id").upper()
    if kind in {int, str}:
        return click.Argument([name], type=kind, metavar=word)
    return click.Argument([name], metavar=f"NAME-OR-{word}")


def _params_of(name: str, field: FieldInfo, *, words: str) -> Iterator[click.Parameter]:
    """Yield the argument of a field, or its option and the flag that sends null instead.

    `words` replace the description of the field, if they are not empty.
    """
    for each in field.metadata:
        if isinstance(each, Argument):
            yield click.Argument([name], required=field.is_required(), metavar=each.name)
            return
    said = _said(field)
    yield _option(name, field, said, words=words)
    if said.null:
        help_text = f"Set no value, instead of {said.words}."
        yield click.Option([name + _NULL, said.null], is_flag=True, default=None, help=help_text)


def _said(field: FieldInfo) -> Option:
    return next((each for each in field.metadata if isinstance(each, Option)), _AS_NAMED)


def _option(name: str, field: FieldInfo, said: Option, *, words: str) -> click.Option:
    schema = _schema(field)
    is_flag = schema.get("type") == "boolean"
    dashed = name.replace("_", "-")
    word = said.words or (f"--{dashed}/--no-{dashed}" if is_flag else f"--{dashed}")
    is_many = schema.get("type") == "array"
    is_required = field.is_required() and not said.null
    # Omitted flags would be false, and a default would satisfy a required option.
    usual: dict[str, Any] = {} if is_required else {"default": None}
    return click.Option(
        [name, word, *([said.former] if said.former else [])],
        required=is_required,
        **usual,
        # Names such as `--on/--off` already imply that the option takes no value.
        is_flag=True if is_flag and "/" not in word else None,
        multiple=is_many,
        type=None if is_flag else _type_of(schema["items"] if is_many else schema),
        help=_help(field, words or field.description or "", is_many=is_many),
    )


def _help(field: FieldInfo, words: str, *, is_many: bool) -> str | None:
    usual = field.default if isinstance(field.default, str | int) else None
    parts = (
        words.replace("`", ""),
        "Can be repeated." if is_many else "",
        f"[default: {usual}]" if usual and usual is not True else "",
    )
    return " ".join(filter(None, parts)) or None


def _schema(field: FieldInfo) -> dict[str, Any]:
    """Return the JSON schema of a field without null, and the widest of several choices."""
    hint: Any = field.annotation
    if field.metadata:
        hint = Annotated[hint, *field.metadata]
    schema = TypeAdapter(hint).json_schema()
    known = schema.get("$defs", {})
    choices = [_resolved(each, known) for each in schema.get("anyOf", [schema])]
    choices = [each for each in choices if each.get("type") != "null"]
    # Fields that accept a number or a text, such as durations, accept a text here.
    wide = [each for each in choices if each.get("type") == "array"]
    texts = [each for each in choices if each.get("type") == "string"]
    return (wide or texts or choices)[0]


def _resolved(schema: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = known.get(schema.get("$ref", "").rpartition("/")[2], schema)
    return found


def _type_of(schema: Mapping[str, Any]) -> click.ParamType[Any]:
    """Return the type for click's validation and completion; the action validates the rest."""
    if "enum" in schema:
        return click.Choice(schema["enum"])
    if schema.get("type") == "integer" and not schema.keys() & {"minimum", "maximum"}:
        return click.INT
    if schema.get("type") == "integer":
        return click.IntRange(schema.get("minimum"), schema.get("maximum"))
    return click.STRING


def _carry_out(act: Action[Any, Any], unit: Work, given: dict[str, Any]) -> Mapping[str, Any]:
    arguments: list[Any] = []
    if act.target_name is not None:
        arguments.append(_target(act, given.pop("target")))
    for name in act.variables:
        value = given.pop(name)
        arguments.append(get_user(value, session=unit.session).id if name == _USER else value)
    sent = _sent(act, given)
    if act.is_list:
        return _whole_list(act, unit, arguments, sent)
    if act.takes is not None:
        arguments.append(read_body(act.takes, sent))
    returned = act(unit, *arguments)
    done = {"deleted": True} if act.command == "delete" else {}
    return {**(returned.model_dump(mode="json") if returned else {}), **done}


def _sent(act: Action[Any, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields given by options and flags.

    Raise UsageError if a value and its flag are both given. Raise it as well if neither is given
    for a required field.
    """
    sent = {name: value for name, value in given.items() if value not in (None, ())}
    for name, field in (act.takes.model_fields if act.takes else {}).items():
        null, said = name + _NULL, _said(field)
        if null in sent and name in sent:
            message = f"Use either '{said.words}' or '{said.null}', not both."
            raise click.UsageError(message)
        if sent.pop(null, None):
            sent[name] = None
        if said.null and field.is_required() and name not in sent:
            raise click.UsageError(f"Missing option '{said.words}' or '{said.null}'.")
    return sent


def _target(act: Action[Any, Any], path: str) -> ProjectView | GroupView:
    if act.permission.target is Target.PROJECT:
        return project_at(path)
    if act.permission.target is Target.GROUP:
        return follow_to_group(path, OPERATOR, session=db.session())
    return holder_at(path)


def _whole_list(
    act: Action[Any, Any], unit: Work, arguments: list[Any], sent: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return a list with all its parts, up to 1,000 items, and the total."""
    items: list[Any] = []
    query = cast("type[Query]", act.takes)
    sent = dict(sent)
    total, cursor, part = None, None, _first_part(query, sent.pop("page", 1))
    while part is not None:
        found: Found[Any] = act(unit, *arguments, read_body(query, {**sent, **part}))
        items += [each.model_dump(mode="json") for each in found.items]
        total, cursor = found.total, found.next_cursor
        part = _next_part(part, found, len(items))
    if total is None and cursor:
        return {act.plural: items, "next_cursor": cursor}
    return {act.plural: items, "total": len(items) if total is None else total}


def _first_part(query: type[Query], page: int) -> dict[str, Any] | None:
    """Return the parameters for the first part of a command's page of 1,000 entries."""
    first = (page - 1) * _MOST_LISTED // _PER_PAGE + 1
    return {"per_page": _PER_PAGE, **({"page": first} if issubclass(query, OffsetQuery) else {})}


def _next_part(part: dict[str, Any], found: Found[Any], read: int) -> dict[str, Any] | None:
    if read >= _MOST_LISTED:
        return None
    if found.next_cursor:
        return {**part, "cursor": found.next_cursor}
    if found.total is not None and part["page"] * _PER_PAGE < found.total:
        return {**part, "page": part["page"] + 1}
    return None
