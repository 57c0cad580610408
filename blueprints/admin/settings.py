"""The page /admin/settings: all settings, and forms for the live settings."""

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.core.errors import NotFoundError
from domain.releases.version import Release, parse_release
from forms.instance_settings import SettingsForm, form_for
from web.access.decorators import administrator
from web.admin.settings import (
    SectionView,
    forget_setting,
    matching,
    section_views,
    settings_now,
    store_setting,
    title_of,
)
from web.extensions import db
from web.http.public_urls import current_path
from web.http.work import work
from web.pages.list_query import list_query
from web.releases.rehearsal import rehearse
from web.services import now, services
from web.settings.reader import SettingsError
from web.settings.stored import stored_settings

instance_settings = Blueprint("settings", __name__, url_prefix="/settings")
_RELEASE = "release"
_LONGEST_SEARCH = 200
#: Form field that confirms a change of the running release.
_CONFIRMED = "confirmed_release"


@instance_settings.get("")
@administrator
def index() -> ResponseReturnValue:
    """Show all settings by section, or only the settings that match a search."""
    search = list_query("search").get("search", "").strip()[:_LONGEST_SEARCH]
    sections = matching(_sections(), search)
    return render_template("admin/settings/index.html", sections=sections, search=search)


@instance_settings.route("/<section>", methods=["GET", "POST"])
@administrator
def edit(section: str) -> ResponseReturnValue:
    """Change settings of a section; only edited values are stored."""
    found = _get_section(section)
    form = form_for(found.live)
    if not form.validate_on_submit():
        return _form_page(found, form)
    changed = [name for name, _ in form.changes()]
    unconfirmed = _unconfirmed_release(dict(form.changes()).get(_RELEASE))
    if unconfirmed is not None:
        return _confirmation_page(found, unconfirmed)
    for name, text in form.changes():
        store_setting(work(), name, text)
    flash(_saved(changed), "success" if changed else "info")
    return redirect(url_for("admin.settings.edit", section=section))


@instance_settings.post("/<section>/<name>/reset")
@administrator
def reset(section: str, name: str) -> ResponseReturnValue:
    """Reset a setting to the environment's value or the default."""
    found = _get_section(section)
    if name == _RELEASE:
        unconfirmed = _unconfirmed_release(services().live_settings.environment.release)
        if unconfirmed is not None:
            return _confirmation_page(found, unconfirmed)
    try:
        forgotten = forget_setting(work(), name)
    except SettingsError as error:
        raise NotFoundError(str(error)) from error
    flash(f"{title_of(forgotten['name'])} was reset.")
    return redirect(url_for("admin.settings.edit", section=section))


def _unconfirmed_release(text: str | None) -> Release | None:
    """Return the new release if the administrator has not confirmed it yet."""
    current = settings_now(session=db.session()).release
    if text in {None, current} or request.form.get(_CONFIRMED) == text:
        return None
    return parse_release(text or "")


def _confirmation_page(section: SectionView, release: Release) -> ResponseReturnValue:
    """Show which consumers a release affects, with the form to submit again."""
    current = settings_now(session=db.session())
    return render_template(
        "admin/settings/confirm_release.html",
        section=section,
        found=rehearse(release, current, session=db.session(), now=now()),
        keep_days=current.call_keep_days,
        action=current_path(),
        sent=[
            pair
            for pair in request.form.items(multi=True)
            if pair[0] not in {_CONFIRMED, "csrf_token"}
        ],
    )


def _sections() -> tuple[SectionView, ...]:
    environment = services().live_settings.environment
    return section_views(environment, stored_settings(session=db.session()))


def _get_section(key: str) -> SectionView:
    found = next((each for each in _sections() if each.key == key and each.live), None)
    if found is None:
        raise NotFoundError("Settings not found.")
    return found


def _saved(changed: list[str]) -> str:
    if not changed:
        return "No changes."
    titles = ", ".join(title_of(name) for name in changed)
    return f"Saved: {titles}. Changes apply within a second."


def _form_page(section: SectionView, form: SettingsForm) -> ResponseReturnValue:
    page = render_template("admin/settings/edit.html", section=section, form=form)
    return page, 422 if form.errors and request.method == "POST" else 200
