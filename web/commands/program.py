"""The `gatebell` program, which loads its commands and prints errors as JSON."""

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError, NoSuchCommand
from click.shell_completion import CompletionItem, get_completion_class
from flask.cli import AppGroup

from web.commands.output import add_output_option, print_result
from web.memory import suspend_garbage_collection
from web.version import get_running_build


@click.command("version")
def version_command() -> None:
    """Print the version and, if known, the commit."""
    build = get_running_build()
    print_result({"version": build.version, "commit": build.revision or None})


def _print_version(context: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    if value and not context.resilient_parsing:
        click.echo(f"Gatebell {get_running_build()}")
        context.exit()


_FAILURE_STATUS, _USAGE_ERROR_STATUS = 1, 2
_SHELLS = ("bash", "zsh", "fish")


class LazyCommandGroup(AppGroup):
    """A command group that imports its commands when they are used."""

    def __init__(
        self,
        *,
        places: Mapping[str, tuple[str, str]],
        former_names: Mapping[str, str],
        **options: Any,
    ) -> None:
        """Store the location (`module:name`) and the short help of each command.

        For a command generated from actions, the location is a module of the domain, or several
        modules separated by commas. It may also specify the prefix of the actions' names
        (`module:prefix`). Deprecated command names still work, but are not listed.
        """
        super().__init__(**options, context_settings={"help_option_names": ["-h", "--help"]})
        self._places = places
        self._former_names = former_names
        version = click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Print the version and exit.",
        )
        self.params.append(version)
        add_output_option(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in alphabetical order."""
        del ctx
        return sorted(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command, or return None if there is no command with this name."""
        cmd_name = self._former_names.get(cmd_name, cmd_name)
        if cmd_name in self._places and cmd_name not in self.commands:
            with suspend_garbage_collection():
                command = _import_command(cmd_name, *self._places[cmd_name])
            add_output_option(command)
            self.commands[cmd_name] = command
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names of the commands with their short help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._places[name][1]) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command or option."""
        options = click.Command.shell_complete(self, ctx, incomplete)
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [*(CompletionItem(name, help=self._places[name][1]) for name in names), *options]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or suggest similar names if the name is wrong."""
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            known = self.list_commands(ctx)
            raise NoSuchCommand(args[0], possibilities=known, ctx=ctx) from error

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command.

        Exit with status 2 for wrong arguments, and with status 1 for all other failures.
        """
        named = {"prog_name": self.name, **options, "standalone_mode": False}
        try:
            status = super().main(*args, **named)
        except NoArgsIsHelpError as error:
            error.show()
            sys.exit(_USAGE_ERROR_STATUS)
        except Exception as error:
            told = _describe_error(error)
            if told is None:
                raise
            click.echo(json.dumps(told, ensure_ascii=False), err=True)
            sys.exit(
                _USAGE_ERROR_STATUS if isinstance(error, click.UsageError) else _FAILURE_STATUS
            )
        sys.exit(status if isinstance(status, int) else 0)


def _import_command(name: str, place: str, help_text: str) -> click.Command:
    """Return a command from this package, or a command generated from actions."""
    if place.startswith("domain."):
        generated = import_module("web.commands.action_commands")
        made: click.Command = generated.build_command_group(name, place, help_text)
        return made
    module, _, attribute = place.partition(":")
    written: click.Command = getattr(import_module(f"web.commands.{module}"), attribute)
    return written


def _describe_error(error: Exception) -> dict[str, str] | None:
    """Return the error message as an object, or None for an internal error."""
    if isinstance(error, click.UsageError):
        more = {"help": f"{error.ctx.command_path} --help"} if error.ctx else {}
        return {"error": error.format_message(), **more}
    if isinstance(error, click.ClickException):
        return {"error": error.format_message()}
    if isinstance(error, click.Abort):
        return {"error": "Aborted."}
    from web.commands.execution import describe_known_error  # noqa: PLC0415 - its imports are slow

    sentence = describe_known_error(error)
    return None if sentence is None else {"error": sentence}


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def print_completion_script(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    For bash, add `eval "$(gatebell completion bash)"` to ~/.bashrc. For zsh, add `eval "$(gatebell
    completion zsh)"` to ~/.zshrc after compinit. For fish, run `gatebell completion fish >
    ~/.config/fish/completions/gatebell.fish`.
    """
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click knows all three
    click.echo(found(context.find_root().command, {}, "gatebell", "_GATEBELL_COMPLETE").source())
