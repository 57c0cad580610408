"""/admin/settings: all settings, and changes of those that can change at run time."""

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.errors import NotFoundError
from forms.instance_settings import SettingsForm, form_for
from web.access.marks import administrator
from web.admin.setting_changes import forget_setting, store_setting, stored_settings
from web.admin.setting_views import SectionView, section_views, title_of
from web.extensions import db
from web.services import now, services
from web.settings.reader import SettingsError

instance_settings = Blueprint("settings", __name__, url_prefix="/settings")


@instance_settings.get("")
@administrator
def index() -> ResponseReturnValue:
    """Show all settings by section."""
    return render_template("admin/settings/index.html", sections=_sections())


@instance_settings.route("/<section>", methods=["GET", "POST"])
@administrator
def edit(section: str) -> ResponseReturnValue:
    """Change settings of a section; only edited values are stored."""
    found = _get_section(section)
    form = form_for(found.live)
    if not form.validate_on_submit():
        return _form_page(found, form)
    changed = [name for name, _ in form.changes()]
    for name, text in form.changes():
        store_setting(name, text, session=db.session(), now=now())
    flash(_saved(changed), "success" if changed else "info")
    return redirect(url_for("admin.settings.edit", section=section))


@instance_settings.post("/<section>/<name>/reset")
@administrator
def reset(section: str, name: str) -> ResponseReturnValue:
    """Reset a setting to the environment's value or the default."""
    _get_section(section)
    try:
        forgotten = forget_setting(name, session=db.session())
    except SettingsError as error:
        raise NotFoundError(str(error)) from error
    flash(f"{title_of(forgotten['name'])} was reset.")
    return redirect(url_for("admin.settings.edit", section=section))


def _sections() -> tuple[SectionView, ...]:
    environment = services().live_settings.environment
    return section_views(environment, stored_settings(session=db.session()))


def _get_section(key: str) -> SectionView:
    found = next((each for each in _sections() if each.key == key and each.live), None)
    if found is None:
        message = "Settings not found."
        raise NotFoundError(message)
    return found


def _saved(changed: list[str]) -> str:
    if not changed:
        return "No changes."
    titles = ", ".join(title_of(name) for name in changed)
    return f"Saved: {titles}. Changes apply within a second."


def _form_page(section: SectionView, form: SettingsForm) -> ResponseReturnValue:
    page = render_template("admin/settings/edit.html", section=section, form=form)
    return page, 422 if form.errors and request.method == "POST" else 200
