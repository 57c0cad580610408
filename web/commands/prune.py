"""The command that prunes the database."""

import json

import click
from flask.cli import with_appcontext

from web.jobs.maintenance import prune_database
from web.services import services


@click.command("prune")
@with_appcontext
def prune_command() -> None:
    """Remove expired rows and old deliveries now, and print how many were removed."""
    click.echo(json.dumps(prune_database(services().live_settings.environment)))
