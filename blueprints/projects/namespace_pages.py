"""Pages on which the path of a group or project is changed, and on which it is deleted."""

from dataclasses import replace
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.access.roles import Role
from domain.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.projects import deletion, moving
from domain.projects.access import get_group_for
from domain.projects.changes import deleted, edited, path_released
from domain.projects.contents import contents_of
from domain.projects.editing import Changes
from domain.projects.former_paths import list_former_paths, release_former_path
from domain.projects.overview import groups_to_create_in
from domain.projects.paths import parent
from domain.projects.transfers import explain_transfer, keep_owned
from domain.projects.views import GroupView, Namespace, ProjectView
from forms.base import Form
from forms.namespaces import ConfirmationForm, PathForm, TransferForm
from web.access.marks import get_current_user, viewer
from web.extensions import db
from web.http.audit_events import record_event
from web.http.routes import reserved_names
from web.services import now

#: To choose from; any other group can be entered.
_MOST_GROUPS = 200
_MOST_FORMER = 100
#: Errors of what was entered, besides those of the URL.
_REFUSALS = (InvalidError, NotFoundError, ConflictError, ForbiddenError)


class PlacePages:
    """The steps that the pages of groups and of projects share."""

    def __init__(self, holder: GroupView | ProjectView) -> None:
        """Store the group or project as the user sees it."""
        self.holder = holder
        self.place: Namespace = holder.namespace
        self.is_group = isinstance(holder, GroupView)
        #: Has the endpoints of the settings, and of the pages of this class.
        self.blueprint = f"{self.place.resource_type}_places"
        self.settings = f"{'group_places' if self.is_group else 'projects'}.general"

    def rename(self) -> ResponseReturnValue:
        """Show the paths, and change the last part of the present one."""
        form = PathForm(path=self.place.path.rpartition("/")[2])
        if not form.validate_on_submit():
            return self._rename_page(form)
        try:
            changes = self._renamed(form.path.data or "")
        except _REFUSALS as error:
            db.session.rollback()
            form.object_to("path", str(error))
            return self._rename_page(form)
        if not changes:
            return self._back("Nothing was changed.")
        self._moved(changes)
        return self._back(f"The path is now {self.place.path}. The old URLs lead here.")

    def release(self, former_id: int) -> ResponseReturnValue:
        """Let others have a former path."""
        try:
            path = release_former_path(self.place, former_id, session=db.session())
        except _REFUSALS as error:
            form = PathForm(formdata=None, path=self.place.path.rpartition("/")[2])
            return self._rename_page(form, problem=str(error))
        record_event(path_released(self.place, path))
        return self._back(f"{path} was released. Its URLs no longer lead here.")

    def transfer(self) -> ResponseReturnValue:
        """Choose a group, explain what a transfer changes, and make it."""
        if "to" not in request.values:
            return self._transfer_page(TransferForm(formdata=None))
        form = TransferForm() if request.method == "POST" else TransferForm(formdata=request.args)
        try:
            target = self._target(form.to.data or "")
        except _REFUSALS as error:
            form.object_to("to", str(error))
            return self._transfer_page(form)
        if not (form.validate_on_submit() and form.confirms(self.place.path)):
            return self._transfer_page(form, target=target, is_chosen=True)
        try:
            self._moved(self._transferred(target))
        except _REFUSALS as error:
            db.session.rollback()
            form.object_to("confirmation", str(error))
            return self._transfer_page(form, target=target, is_chosen=True)
        return self._back(f"The {self.place.resource_type} is now {self.place.path}.")

    def delete(self) -> ResponseReturnValue:
        """Show what goes along, and delete."""
        form, session = ConfirmationForm(), db.session()
        if not (form.validate_on_submit() and form.confirms(self.place.path)):
            return self._page("delete", form, contents=contents_of(self.place, session=session))
        if self.is_group:
            paths = deletion.delete_group(self.place, session=session, now=now())
            record_event(deleted(self.place, projects=len(paths)))
        else:
            deletion.delete_project(self.place, session=session, now=now())
            record_event(deleted(self.place))
        flash(f"The {self.place.resource_type} {self.place.path} was deleted.")
        return redirect(url_for("home.groups_and_projects"))

    def _renamed(self, segment: str) -> Changes:
        session = db.session()
        if not self.is_group:
            return moving.rename_project(self.holder.id, segment, session=session, now=now())
        return moving.rename_group(
            self.holder.id, segment, reserved=reserved_names(), session=session, now=now()
        )

    def _transferred(self, target: str | None) -> Changes:
        session = db.session()
        if not self.is_group:
            return moving.transfer_project(self.holder.id, target or "", session=session, now=now())
        return moving.transfer_group(
            self.holder.id, target, reserved=reserved_names(), session=session, now=now()
        )

    def _moved(self, changes: Changes) -> None:
        """Take the new path up, and record the move."""
        self.place = replace(self.place, path=changes["path"][1])
        record_event(edited(self.place, changes))
        if self.is_group:
            keep_owned(self.place, get_current_user().id, session=db.session(), now=now())

    def _target(self, path: str) -> str | None:
        """Return the path of the group to move into; None for the top level."""
        if not path and self.is_group:
            return None
        if not path:
            message = "Enter the full path of a group."
            raise InvalidError(message, field="to")
        group = get_group_for(path, viewer(), at_least=Role.MAINTAINER, session=db.session())
        if group.path == parent(self.place.path):
            message = f"The {self.place.resource_type} is already in {group.path}."
            raise InvalidError(message, field="to")
        return group.path

    def _rename_page(self, form: PathForm, *, problem: str = "") -> ResponseReturnValue:
        former = list_former_paths(self.place, most=_MOST_FORMER, session=db.session())
        return self._page("rename", form, former_paths=former, problem=problem)

    def _transfer_page(
        self, form: TransferForm, *, target: str | None = None, is_chosen: bool = False
    ) -> ResponseReturnValue:
        session = db.session()
        groups = groups_to_create_in(viewer(), chosen=None, most=_MOST_GROUPS, session=session)
        explained = (
            explain_transfer(self.place, target, viewer(), session=session) if is_chosen else None
        )
        return self._page("transfer", form, groups=groups, target=target, explained=explained)

    def _page(
        self, name: str, form: Form, *, problem: str = "", **context: Any
    ) -> ResponseReturnValue:
        page = render_template(
            f"places/{name}.html",
            holder=self.holder,
            namespace=self.place,
            word=self.place.resource_type,
            blueprint=self.blueprint,
            where=self._where(),
            settings_url=url_for(self.settings, **self._where()),
            form=form,
            problem=problem,
            **context,
        )
        return page, 422 if form.errors or problem else 200

    def _where(self) -> dict[str, Any]:
        """Return the variables of the URLs."""
        return {f"{self.place.resource_type}_path": self.place.path}

    def _back(self, words: str) -> ResponseReturnValue:
        flash(words)
        return redirect(url_for(self.settings, **self._where()))
