"""The command and the option that print the version of Gatebell."""

import click

from web.build import running_build
from web.commands.output import print_answer


@click.command("version")
def version_command() -> None:
    """Print the version and, where it is known, the commit."""
    build = running_build()
    print_answer({"version": build.version, "commit": build.revision or None})


def version_option() -> click.Option:
    """Return the option --version."""
    return click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Print the version and exit.",
    )


def _print_version(context: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    if value and not context.resilient_parsing:
        click.echo(f"Gatebell {running_build()}")
        context.exit()
