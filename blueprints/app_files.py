"""Files that let browsers install the service as an app and show its notifications."""

from pathlib import Path

from flask import Response, jsonify, request, send_from_directory, url_for
from flask.typing import ResponseReturnValue

from domain.paging.contacts.devices import renew_device
from web.access.decorators import open_to_anyone
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.public_urls import add_base_path
from web.http.work import get_unit_of_work
from web.services import get_settings

app_files = MachineBlueprint("app_files", __name__, errors=ErrorFormat.MESSAGE)
_SCRIPTS = Path(__file__).parent.parent / "static" / "js"
#: Sizes of the icons in `static/icons` in pixels, with the purpose of each icon.
_ICONS = (("192", "any"), ("512", "any"), ("maskable-512", "maskable"))
#: Both files change with a release or a setting.
_REVALIDATE = {"Cache-Control": "no-cache"}


@app_files.get("/manifest.webmanifest")
@open_to_anyone
def manifest() -> Response:
    """Return the manifest of the app (https://www.w3.org/TR/appmanifest/)."""
    name, home = get_settings().instance_name, add_base_path("/")
    icons = [
        {
            "src": url_for("static", filename=f"icons/{file}.png"),
            "sizes": f"{file.removeprefix('maskable-')}x{file.removeprefix('maskable-')}",
            "type": "image/png",
            "purpose": purpose,
        }
        for file, purpose in _ICONS
    ]
    logo = {"src": url_for("static", filename="logo.svg"), "sizes": "any", "type": "image/svg+xml"}
    response = jsonify(
        id=home,
        name=name,
        short_name=name,
        start_url=home,
        scope=home,
        display="standalone",
        background_color="#ffffff",
        theme_color="#1d5bbf",
        icons=[logo, *icons],
    )
    response.headers.update(_REVALIDATE)
    response.mimetype = "application/manifest+json"
    return response


@app_files.get("/service-worker.js")
@open_to_anyone
def service_worker() -> Response:
    """Return the script that shows notifications, at the root so that it covers all pages."""
    response = send_from_directory(_SCRIPTS, "service_worker.js", mimetype="text/javascript")
    response.headers.update(_REVALIDATE)
    response.headers["Content-Security-Policy"] = "default-src 'none'; connect-src 'self'"
    return response


@app_files.post("/-/devices/renew")
@open_to_anyone
def renew() -> ResponseReturnValue:
    """Replace the subscription of a device whose browser presents the token of the device."""
    token = renew_device(
        get_unit_of_work(), request.form.get("token", ""), request.form.get("subscription", "")
    )
    return {"token": token}, 200, {"Cache-Control": "no-store"}
