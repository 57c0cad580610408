"""Files that browsers need to install the service as an app and to show its notifications."""

from pathlib import Path
from typing import NamedTuple

from flask import Response, jsonify, request, send_from_directory, url_for
from flask.typing import ResponseReturnValue

from domain.paging.contacts.devices import renew_device
from web.access.decorators import open_to_anyone
from web.http.endpoints import ApiClientBlueprint, ErrorFormat
from web.http.public_urls import add_base_path
from web.http.unit_of_work import get_unit_of_work
from web.services import get_settings

app_files = ApiClientBlueprint("app_files", __name__, errors=ErrorFormat.MESSAGE)
_SCRIPTS = Path(__file__).parent.parent / "static" / "js"


class _Icon(NamedTuple):
    """An icon in `static/`, as described in the manifest."""

    file: str
    sizes: str
    purpose: str = "any"


_ICONS = (
    _Icon("logo.svg", "any"),
    _Icon("icons/192.png", "192x192"),
    _Icon("icons/512.png", "512x512"),
    _Icon("icons/maskable-512.png", "512x512", "maskable"),
)
_APPEARANCE = {
    "display": "standalone",
    "background_color": "#ffffff",
    "theme_color": "#1d5bbf",
}
#: Headers for the manifest and the service worker, which can change with a release or a setting.
_REVALIDATE = {"Cache-Control": "no-cache"}


@app_files.get("/manifest.webmanifest")
@open_to_anyone
def manifest() -> Response:
    """Return the manifest of the app (https://www.w3.org/TR/appmanifest/)."""
    name, home = get_settings().instance_name, add_base_path("/")
    places = {"id": home, "start_url": home, "scope": home}
    icons = [
        {"src": url_for("static", filename=each.file), "sizes": each.sizes, "purpose": each.purpose}
        for each in _ICONS
    ]
    response = jsonify(name=name, short_name=name, icons=icons, **places, **_APPEARANCE)
    response.headers.update(_REVALIDATE)
    response.mimetype = "application/manifest+json"
    return response


@app_files.get("/service-worker.js")
@open_to_anyone
def service_worker() -> Response:
    """Return the service worker. Its URL is at the root, so that it can control all pages."""
    response = send_from_directory(
        _SCRIPTS, "service_worker.js", mimetype="text/javascript", max_age=0
    )
    response.headers.update(_REVALIDATE)
    response.headers["Content-Security-Policy"] = (
        "default-src 'none'; connect-src 'self'; img-src 'self'"
    )
    return response


@app_files.post("/-/devices/renew")
@open_to_anyone
def renew() -> ResponseReturnValue:
    """Replace the push subscription of the device that the token identifies."""
    token = renew_device(
        get_unit_of_work(), request.form.get("token", ""), request.form.get("subscription", "")
    )
    return {"token": token}, 200, {"Cache-Control": "no-store"}
