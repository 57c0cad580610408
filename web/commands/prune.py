"""Command that prunes the database."""

import click
from flask.cli import with_appcontext

from web.commands.output import print_result
from web.jobs.retention import prune_database, remove_deleted_data
from web.services import get_services


@click.command("prune")
@with_appcontext
def prune_command() -> None:
    """Remove expired and deleted data immediately, and print the number of removed rows."""
    settings = get_services().live_settings.environment_settings
    print_result({**prune_database(settings), **remove_deleted_data(settings)})
