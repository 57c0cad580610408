"""Command that prunes the database."""

import click
from flask.cli import with_appcontext

from web.commands.output import print_answer
from web.jobs.retention import prune_database, remove_from_database
from web.services import services


@click.command("prune")
@with_appcontext
def prune_command() -> None:
    """Remove expired and deleted data immediately, and print the number of removed rows."""
    settings = services().live_settings.environment
    print_answer({**prune_database(settings), **remove_from_database(settings)})
