"""The /admin/settings page: all settings, and forms to change settings at run time."""

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.core.errors import NotFoundError
from domain.releases.version import Release, parse_release
from forms.instance_settings import SettingsForm, build_settings_form
from web.access.decorators import administrator_required
from web.admin.settings import (
    SectionView,
    filter_sections,
    format_setting_title,
    get_settings_in_transaction,
    list_section_views,
    reset_setting,
    store_setting_text,
)
from web.extensions import db
from web.http.public_urls import get_current_path_and_query
from web.http.unit_of_work import get_unit_of_work
from web.pages.list_query import get_list_query
from web.releases.rehearsal import rehearse_release
from web.services import get_current_time, get_services
from web.settings.environment import SettingsError
from web.settings.stored_settings import read_stored_settings

instance_settings = Blueprint("settings", __name__, url_prefix="/settings")
_RELEASE_SETTING = "release"
_MAX_SEARCH_LENGTH = 200
#: Form field that confirms a change to the running release.
_CONFIRMATION_FIELD = "confirmed_release"


@instance_settings.get("")
@administrator_required
def index() -> ResponseReturnValue:
    """Show all settings by section, or only the settings that match a search."""
    search = get_list_query("search").get("search", "").strip()[:_MAX_SEARCH_LENGTH]
    sections = filter_sections(_list_shown_sections(), search)
    return render_template("admin/settings/index.html", sections=sections, search=search)


@instance_settings.route("/<section>", methods=["GET", "POST"])
@administrator_required
def edit(section: str) -> ResponseReturnValue:
    """Change settings in a section.

    Only edited values are stored.
    """
    found = _get_section(section)
    form = build_settings_form(found.live_settings)
    if not form.validate_on_submit():
        return _render_form(found, form)
    changed = [name for name, _ in form.iterate_changes()]
    unconfirmed = _find_unconfirmed_release(dict(form.iterate_changes()).get(_RELEASE_SETTING))
    if unconfirmed is not None:
        return _render_confirmation(found, unconfirmed)
    for name, text in form.iterate_changes():
        store_setting_text(get_unit_of_work(), name, text)
    flash(_format_saved_message(changed), "success" if changed else "info")
    return redirect(url_for("admin.settings.edit", section=section))


@instance_settings.post("/<section>/<name>/reset")
@administrator_required
def reset(section: str, name: str) -> ResponseReturnValue:
    """Reset a setting to its value from the environment, or to its default."""
    found = _get_section(section)
    if name == _RELEASE_SETTING:
        unconfirmed = _find_unconfirmed_release(
            get_services().live_settings.environment_settings.release
        )
        if unconfirmed is not None:
            return _render_confirmation(found, unconfirmed)
    try:
        reset_setting(get_unit_of_work(), name)
    except SettingsError as error:
        raise NotFoundError(str(error)) from error
    flash(f"{format_setting_title(name)} was reset.")
    return redirect(url_for("admin.settings.edit", section=section))


def _find_unconfirmed_release(text: str | None) -> Release | None:
    """Return the new release if the administrator has not confirmed it yet."""
    current = get_settings_in_transaction(session=db.session()).release
    if text in {None, current} or request.form.get(_CONFIRMATION_FIELD) == text:
        return None
    return parse_release(text or "")


def _render_confirmation(section: SectionView, release: Release) -> ResponseReturnValue:
    """Show the consumers that are affected by a release, and a form that confirms the change."""
    current = get_settings_in_transaction(session=db.session())
    return render_template(
        "admin/settings/confirm_release.html",
        section=section,
        found=rehearse_release(release, current, session=db.session(), now=get_current_time()),
        keep_days=current.call_keep_days,
        action=get_current_path_and_query(),
        sent=[
            pair
            for pair in request.form.items(multi=True)
            if pair[0] not in {_CONFIRMATION_FIELD, "csrf_token"}
        ],
    )


def _list_shown_sections() -> tuple[SectionView, ...]:
    environment = get_services().live_settings.environment_settings
    return list_section_views(environment, read_stored_settings(session=db.session()))


def _get_section(key: str) -> SectionView:
    found = next(
        (each for each in _list_shown_sections() if each.key == key and each.live_settings), None
    )
    if found is None:
        raise NotFoundError("Settings not found.")
    return found


def _format_saved_message(changed: list[str]) -> str:
    if not changed:
        return "No changes."
    titles = ", ".join(format_setting_title(name) for name in changed)
    return f"Saved: {titles}. Changes apply within a second."


def _render_form(section: SectionView, form: SettingsForm) -> ResponseReturnValue:
    page = render_template("admin/settings/edit.html", section=section, form=form)
    return page, 422 if form.errors and request.method == "POST" else 200
