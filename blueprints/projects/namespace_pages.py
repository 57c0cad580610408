"""Settings pages for groups and projects: name, path, transfer and deletion."""

from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.core.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.projects import group_actions, project_actions
from domain.projects.access import get_group
from domain.projects.deletion import count_contents
from domain.projects.my_projects import list_groups_for_new_projects
from domain.projects.transfers import find_transfer_effects
from domain.projects.types import GroupChange, GroupTransfer, ProjectChange, ProjectTransfer
from domain.projects.views import GroupView, ProjectOrGroup
from forms.base import Form
from forms.projects import ConfirmationForm, GroupSettingsForm, PathForm, TransferForm
from web.access.decorators import get_request_viewer, permission_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page

#: Maximum number of groups in the selection list. Users can enter any other group.
_MAX_GROUPS = 200
_MAX_FORMER_PATHS = 100
_SETTINGS = (
    *("name", "description"),
    *("require_two_factor_authentication", "two_factor_grace_period"),
)
#: Errors that the form shows for entered values.
_SHOWN_ERRORS = (InvalidError, NotFoundError, ConflictError, ForbiddenError)


class NamespacePages:
    """The views shared by the settings pages of groups and projects."""

    def __init__(self, holder: ProjectOrGroup) -> None:
        """Store the user's view of the group or project."""
        self.holder = holder
        self.namespace = holder.namespace
        self.word = self.namespace.resource_type
        #: Name of the blueprint with the endpoints of these pages.
        self.blueprint = f"{self.word}_settings"
        self.settings = "group_settings.general" if holder.is_group else "projects.general"

    def rename(self) -> ResponseReturnValue:
        """Show the current and previous paths, and change the last segment of the path."""
        form = PathForm(path=self.namespace.path.rpartition("/")[2])
        if not form.validate_on_submit():
            return self._render_rename_page(form)
        try:
            path = self._change_namespace_path(form.path.data or "")
        except _SHOWN_ERRORS as error:
            form.add_error("path", str(error))
            return self._render_rename_page(form)
        if path == self.namespace.path:
            return self._redirect_to_settings(path, "Nothing was changed.")
        return self._redirect_to_settings(path, f"Path changed to {path}. Old URLs keep working.")

    def release(self, former_id: int) -> ResponseReturnValue:
        """Release a previous path for use by other groups and projects."""
        try:
            path = project_actions.release_path(get_unit_of_work(), self.holder, former_id)
        except _SHOWN_ERRORS as error:
            form = PathForm(formdata=None, path=self.namespace.path.rpartition("/")[2])
            return self._render_rename_page(form, problem=str(error))
        words = f"Path {path} released. URLs with this path no longer lead here."
        return self._redirect_to_settings(self.namespace.path, words)

    def transfer(self) -> ResponseReturnValue:
        """Show the target groups and the effects of a transfer, and perform the transfer."""
        if "to" not in request.values:
            return self._render_transfer_page(TransferForm(formdata=None))
        form = TransferForm() if request.method == "POST" else TransferForm(formdata=request.args)
        try:
            target = project_actions.find_transfer_destination(
                get_unit_of_work(), self.holder, form.to.data or ""
            )
        except _SHOWN_ERRORS as error:
            form.add_error("to", str(error))
            return self._render_transfer_page(form)
        if not (form.validate_on_submit() and form.confirms_path(self.namespace.path)):
            return self._render_transfer_page(form, target=target, is_chosen=True)
        try:
            path = self._transfer_to_group(target)
        except _SHOWN_ERRORS as error:
            form.add_error("confirmation", str(error))
            return self._render_transfer_page(form, target=target, is_chosen=True)
        return self._redirect_to_settings(path, f"The {self.word} was transferred to {path}.")

    def delete(self) -> ResponseReturnValue:
        """Show the contents that will be deleted, and delete the group or project."""
        form = ConfirmationForm()
        if not (form.validate_on_submit() and form.confirms_path(self.namespace.path)):
            contents = count_contents(self.namespace, session=db.session())
            return self._render_page("delete", form, contents=contents)
        if isinstance(self.holder, GroupView):
            group_actions.delete_group(get_unit_of_work(), self.holder)
        else:
            project_actions.delete_project(get_unit_of_work(), self.holder)
        flash(f"The {self.word} {self.namespace.path} was deleted.")
        return redirect(url_for("home.groups_and_projects"))

    def _change_namespace_path(self, segment: str) -> str:
        """Change the last segment of the path, and return the full path."""
        if isinstance(self.holder, GroupView):
            change = GroupChange(path=segment)
            return group_actions.change_group(get_unit_of_work(), self.holder, change).full_path
        made = project_actions.change_project(
            get_unit_of_work(), self.holder, ProjectChange(path=segment)
        )
        return made.path_with_namespace

    def _transfer_to_group(self, target: str | None) -> str:
        """Transfer the group or project to a group or to the top level, and return the new path."""
        if isinstance(self.holder, GroupView):
            above = (
                get_group(target, get_request_viewer(), session=db.session()) if target else None
            )
            move = GroupTransfer(group_id=above.id if above else None)
            return group_actions.transfer_group(get_unit_of_work(), self.holder, move).full_path
        transfer = ProjectTransfer(namespace=target or "")
        return project_actions.transfer_project(
            get_unit_of_work(), self.holder, transfer
        ).path_with_namespace

    def _render_rename_page(self, form: PathForm, *, problem: str = "") -> ResponseReturnValue:
        former = project_actions.list_namespace_former_paths(get_unit_of_work(), self.holder)[
            :_MAX_FORMER_PATHS
        ]
        return self._render_page("rename", form, former_paths=former, problem=problem)

    def _render_transfer_page(
        self, form: TransferForm, *, target: str | None = None, is_chosen: bool = False
    ) -> ResponseReturnValue:
        session = db.session()
        groups = list_groups_for_new_projects(
            get_request_viewer(), chosen=None, maximum=_MAX_GROUPS, session=session
        )
        explained = None
        if is_chosen:
            explained = find_transfer_effects(
                self.namespace, target, get_request_viewer(), session=session
            )
        return self._render_page(
            "transfer", form, groups=groups, target=target, explained=explained
        )

    def _render_page(
        self, name: str, form: Form, *, problem: str = "", **context: Any
    ) -> ResponseReturnValue:
        page = render_template(
            f"namespaces/{name}.html",
            holder=self.holder,
            namespace=self.namespace,
            word=self.word,
            blueprint=self.blueprint,
            where=self._build_url_variables(self.namespace.path),
            settings_url=url_for(self.settings, **self._build_url_variables(self.namespace.path)),
            form=form,
            problem=problem,
            **context,
        )
        return page, 422 if form.errors or problem else 200

    def _build_url_variables(self, path: str) -> dict[str, Any]:
        """Return the URL variable for a path: `group_path` or `project_path`."""
        return {f"{self.word}_path": path}

    def _redirect_to_settings(self, path: str, words: str) -> ResponseReturnValue:
        flash(words)
        return redirect(url_for(self.settings, **self._build_url_variables(path)))


def rename(**holder: ProjectOrGroup) -> ResponseReturnValue:
    """Change the path of a group or project."""
    return NamespacePages(*holder.values()).rename()


def release(former_id: int, **holder: ProjectOrGroup) -> ResponseReturnValue:
    """Release a previous path of a group or project."""
    return NamespacePages(*holder.values()).release(former_id)


def transfer(**holder: ProjectOrGroup) -> ResponseReturnValue:
    """Transfer a project or group to another group, or a group to the top level."""
    return NamespacePages(*holder.values()).transfer()


def delete(**holder: ProjectOrGroup) -> ResponseReturnValue:
    """Delete the project or group with all its contents."""
    return NamespacePages(*holder.values()).delete()


def _add_namespace_pages(blueprint: PageBlueprint, noun: str) -> None:
    """Add the settings pages to a blueprint.

    `noun` is "groups" or "projects", and selects the permissions of the pages.
    """
    for url, view, action in (
        ("/path", rename, f"{noun}.change"),
        ("/transfer", transfer, f"{noun}.transfer"),
        ("/delete", delete, f"{noun}.delete"),
    ):
        blueprint.route(url, methods=["GET", "POST"])(permission_required(action)(view))
    blueprint.post("/path/<int:former_id>/release")(
        permission_required("former_paths.release")(release)
    )


group_settings = PageBlueprint(
    "group_settings", __name__, url_prefix="/groups/<names:group_path>/-"
)


@group_settings.route("/settings", methods=["GET", "POST"])
@permission_required("groups.change")
def general(group: GroupView) -> ResponseReturnValue:
    """Change the name, the description, and the two-factor requirement for members."""
    form = GroupSettingsForm.from_group(group)
    changed = form.run_if_valid(
        lambda: group_actions.change_group(
            get_unit_of_work(), group, form.build_entered_body(GroupChange)
        )
    )
    if changed is None:
        return render_form_page("groups/general.html", form, group=group, namespace=group.namespace)
    is_same = all(getattr(changed, name) == getattr(group, name) for name in _SETTINGS)
    flash("Nothing was changed." if is_same else "Settings saved.")
    return redirect(url_for("group_settings.general", group_path=group.path))


_add_namespace_pages(group_settings, "groups")


project_settings = PageBlueprint(
    "project_settings", __name__, url_prefix="/<names:project_path>/-/settings"
)
_add_namespace_pages(project_settings, "projects")
