"""Into which projects the things of an export go."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.projects.views import ProjectView
from web.importing.report import Entry, Outcome


@dataclass(frozen=True, kw_only=True)
class Places:
    """Projects of teams, and the one of everything else."""

    #: Names of the export's teams by key.
    teams: Mapping[str, str]
    #: By the name of a team, in lower case.
    by_team: Mapping[str, ProjectView]
    otherwise: ProjectView | None

    def of(self, team: str | None) -> ProjectView | None:
        """Return the project for what a team owns, given by its key."""
        name = self.teams.get(team, "") if team else ""
        return self.by_team.get(name.lower(), self.otherwise)

    def without(self, kind: str, name: str, team: str | None) -> Entry:
        """Return the entry of something that has no project."""
        owner = self.teams.get(team, team) if team else None
        reason = (
            f"Its team {owner} has no project: use --team “{owner}=group/project”, or --project."
            if owner
            else "It belongs to no team: use --project."
        )
        return Entry(kind=kind, name=name, outcome=Outcome.LEFT_OUT, notes=[reason])
