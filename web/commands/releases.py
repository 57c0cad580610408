"""Commands about the release schedule."""

import json
import sys

import click
from flask.cli import AppGroup, with_appcontext

from domain.releases.version import Release, parse_release
from web.admin.setting_changes import settings_now
from web.api.schemas.releases.rehearsals import ReleaseRehearsal
from web.commands.release_checks import check_command
from web.extensions import db
from web.releases.rehearsal import as_text, rehearse
from web.services import now

releases = AppGroup("releases", help="The release schedule.")
releases.add_command(check_command)


class ReleaseType(click.ParamType[Release]):
    """A parameter type for a release."""

    name = "RELEASE"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> Release:
        """Parse the value."""
        try:
            return parse_release(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@releases.command("rehearse")
@click.argument("release", type=ReleaseType())
@click.option(
    "--format", "output", type=click.Choice(["json", "text"]), default="json", show_default=True
)
@with_appcontext
def rehearse_command(*, release: Release, output: str) -> None:
    """List what RELEASE would break for whom, according to the recorded calls.

    The exit status is 0 if nothing breaks, 1 if something does, and 2 for a wrong argument.
    """
    session = db.session()
    found = rehearse(release, settings_now(session=session), session=session, now=now())
    session.rollback()
    if output == "text":
        click.echo("\n".join(as_text(found)))
    else:
        made = ReleaseRehearsal.of(found, most=None).model_dump(mode="json")
        click.echo(json.dumps(made, ensure_ascii=False))
    sys.exit(1 if found.breaking else 0)
