"""Tests of the options and the errors of every command that is generated from an action."""

import json
from collections.abc import Iterator
from inspect import getclosurevars, unwrap
from typing import Any, NamedTuple

import click
import pytest
from flask import Flask
from sqlalchemy import func, select

from domain.access.actions import Action
from models import AuditEvent
from tests.support.service.commands import operate
from tests.support.wire.openapi import read_stored_operations
from web.commands import gatebell
from web.extensions import db

pytestmark = pytest.mark.one_database("sqlite")
#: Arguments that exist, by their names in the help text.
EXISTING = {
    "GROUP": "acme",
    "PROJECT": "acme/shop",
    "PROJECT-OR-GROUP": "acme/shop",
    "ROLE": "developer",
    "USER": "alice",
}
UNKNOWN, TOO_LARGE = "987654321", "9" * 30
LONG = "x" * 100_000
#: Verbs of commands whose options are all fields of the request body.
WITH_ALL_FIELDS = {"add", "change", "create", "set"}
#: Fields of request bodies that commands do not offer.
WITHOUT_OPTION = {
    # `gatebell integrations map` stores a mapping.
    ("integrations", "create"): {
        *("mapping", "rules", "sample", "sample_recovery", "sample_repeat"),
    },
}


#: Errors of commands that do not report missing resources as not found.
OTHER_ERRORS = {
    ("alerts", "snooze"): "Exactly one of `duration`, `until` and `tomorrow` is required.",
    ("projects", "unshare"): "The project is not shared with this group.",
    ("users", "disconnect"): "The user's account is not linked to this identity provider.",
}


class Command(NamedTuple):
    """A generated command."""

    words: tuple[str, str]
    action: Action[Any, Any]
    params: list[click.Parameter]

    def arguments(self, **given: str) -> tuple[str, ...]:
        """Return the command with values of the right type for all that it requires."""
        positional = [
            given.get(each.name or "", EXISTING.get(each.metavar or "", UNKNOWN))
            for each in self.params
            if isinstance(each, click.Argument)
        ]
        options = [
            word
            for each in self.options()
            if each.required or each.name in given
            for word in (each.opts[0], given.get(each.name or "", _value_for(each)))
        ]
        return (*self.words, *options, "--", *positional)

    def options(self) -> list[click.Option]:
        return [each for each in self.params if isinstance(each, click.Option)]


def _value_for(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return str(option.type.choices[0])
    if isinstance(option.type, click.IntRange):
        return str(option.type.min or 1)
    return "x"


def generated_commands() -> Iterator[Command]:
    """Yield all commands that `web/commands/action_commands.py` generates."""
    context = click.Context(gatebell)
    for name in gatebell.list_commands(context):
        group = gatebell.get_command(context, name)
        for verb, command in group.commands.items() if isinstance(group, click.Group) else ():
            run = command.callback and unwrap(command.callback)
            if run and run.__module__ == "web.commands.action_commands":
                action = getclosurevars(run).nonlocals["action"]
                yield Command((name, verb), action, command.params)


@pytest.fixture
def shop(app: Flask) -> Flask:
    operate(app, "users", "create", "alice", "--email", "alice@people.example")
    operate(app, "groups", "create", "acme", "--owner", "alice")
    operate(app, "projects", "create", "acme/shop")
    return app


def failure(app: Flask, arguments: tuple[str, ...]) -> tuple[int, str]:
    """Return the exit status and the error of a command.

    An error in the options also contains the command that prints its help.
    """
    done = app.test_cli_runner().invoke(args=arguments)
    assert isinstance(done.exception, SystemExit), (arguments, done.output, done.exception)
    assert done.stdout == "", arguments
    told = json.loads(done.stderr)
    assert done.exit_code in {1, 2}, arguments
    assert told.keys() == ({"error"} if done.exit_code == 1 else {"error", "help"}), arguments
    return done.exit_code, told["error"]


def events(app: Flask) -> int:
    with app.app_context():
        return db.session.scalar(select(func.count()).select_from(AuditEvent)) or 0


def test_commands_have_an_option_for_each_field_of_the_api(app: Flask) -> None:
    described: dict[str, set[str]] = {}
    for operation in read_stored_operations():
        name = ".".join(operation.name.split(".")[:2])
        fields = {field for field in operation.parameters if not field.endswith("[]")}
        described.setdefault(name, set()).update(fields)
    commands = [
        each
        for each in generated_commands()
        if each.words[1] in WITH_ALL_FIELDS and each.action.name in described
    ]
    assert len(commands) > 35
    missing = {
        each.words: fields
        for each in commands
        if (fields := described[each.action.name] - {param.name for param in each.params})
    }
    assert missing == WITHOUT_OPTION
    for each in commands:
        helped = app.test_cli_runner().invoke(args=[*each.words, "--help"])
        assert helped.exit_code == 0
        assert [p.opts[0] for p in each.options() if p.opts[0] not in helped.stdout] == []


def test_what_exists_can_be_listed_and_shown(shop: Flask) -> None:
    before, count = events(shop), 0
    for each in generated_commands():
        arguments = each.arguments()
        if each.words[1] in {"list", "show"} and UNKNOWN not in arguments:
            printed = operate(shop, *arguments)
            assert not each.action.is_list or isinstance(next(iter(printed.values())), list)
            count += 1
    assert count > 20
    assert events(shop) == before


def test_missing_targets_are_reported(shop: Flask) -> None:
    before, count = events(shop), 0
    for each in generated_commands():
        target = each.params[0] if each.params else None
        if isinstance(target, click.Argument) and target.metavar in EXISTING:
            arguments = each.arguments(**{target.name or "": "no-such/name"})
            status, error = failure(shop, arguments)
            assert (status, "not found" in error) == (1, True), (arguments, error)
            count += 1
    assert count > 130
    assert events(shop) == before


def test_missing_resources_are_reported(shop: Flask) -> None:
    before, count = events(shop), 0
    for each in generated_commands():
        variables = each.action.url_variables.keys() - {"user_id"}
        for number in (UNKNOWN, TOO_LARGE) if variables else ():
            given = {name: number for name in variables if each.action.url_variables[name] is int}
            status, error = failure(shop, each.arguments(**given))
            assert status == 1, (each.words, error)
            if not any(option.required for option in each.options()):
                expected = OTHER_ERRORS.get(each.words, "not found")
                is_too_large = number == TOO_LARGE and error.startswith("A value is too long")
                assert expected in error or is_too_large, (each.words, error)
            count += 1
    assert count > 80
    assert events(shop) == before


def test_missing_options_are_named(app: Flask) -> None:
    count = 0
    for each in generated_commands():
        for required in [option for option in each.options() if option.required]:
            words = list(each.arguments())
            place = words.index(required.opts[0])
            del words[place : place + 2]
            expected = f"Missing option '{required.opts[0]}'"
            status, error = failure(app, tuple(words))
            assert (status, error.startswith(expected)) == (2, True), (words, error)
            count += 1
    assert count > 30


def wrong_values(option: click.Option) -> Iterator[str]:
    """Yield values that the type of an option rejects."""
    if isinstance(option.type, click.Choice):
        yield "no-such-choice"
    elif isinstance(option.type, click.IntRange):
        yield "x"
        limits = ((option.type.min, -1), (option.type.max, 1))
        yield from (str(int(limit) + step) for limit, step in limits if limit is not None)


def test_wrong_choices_and_numbers_are_rejected(app: Flask) -> None:
    count = 0
    for each in generated_commands():
        for option in each.options():
            for value in wrong_values(option):
                arguments = each.arguments(**{option.name or "": value})
                status, error = failure(app, arguments)
                assert (status, option.opts[0] in error) == (2, True), (arguments, error)
                count += 1
    assert count > 100


def test_long_values_are_rejected_in_a_sentence(shop: Flask) -> None:
    before, count = events(shop), 0
    for each in generated_commands():
        if each.words[1] not in WITH_ALL_FIELDS:
            continue
        for option in each.options():
            if not option.is_flag and not isinstance(option.type, click.Choice | click.IntRange):
                arguments = each.arguments(**{option.name or "": LONG})
                status, error = failure(shop, arguments)
                assert status in {1, 2}, (each.words, option.name)
                assert error.endswith("."), (each.words, option.name, error[:300])
                count += 1
    assert count > 100
    assert events(shop) == before
