"""The option that prints the version of Gatebell."""

import tomllib
from pathlib import Path

import click

_PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def version() -> str:
    """Return the version of Gatebell, as pyproject.toml has it."""
    found: str = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]["version"]
    return found


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
        click.echo(f"Gatebell {version()}")
        context.exit()
