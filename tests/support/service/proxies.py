"""nginx and Caddy with the configuration of deploy/, with ports and a certificate of a test."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection
from time import monotonic, sleep

from tests.support.service.live import ROOT

_PROGRAMS = {"nginx": "usr/sbin/nginx", "caddy": "usr/bin/caddy"}
_PATIENCE_SECONDS = 30


def find(name: str) -> str | None:
    """Return the program from scripts/ensure-proxies, or the installed one."""
    ours = ROOT / ".proxies" / _PROGRAMS[name]
    return str(ours) if ours.exists() else shutil.which(name)


@contextmanager
def running_proxy(
    name: str, *, folder: Path, certificate: Path | None, port: int, service_ports: Sequence[int]
) -> Iterator[None]:
    """Run a proxy in front of a service; only names, ports and files differ from deploy/.

    Without a certificate, the proxy speaks HTTP.
    """
    program = find(name)
    assert program is not None
    write = {"nginx": _nginx, "caddy": _caddy}[name]
    command = write(folder, certificate, port, service_ports)
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen([program, *command], cwd=folder, stdout=log, stderr=log)
    try:
        await_port(port, folder / "proxy.log")
        yield
    finally:
        process.terminate()
        process.wait(_PATIENCE_SECONDS)


def await_port(port: int, log: Path) -> None:
    """Wait until the port accepts connections."""
    deadline = monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert monotonic() < deadline, log.read_text(errors="replace")
            sleep(0.1)
        else:
            return


def _nginx(
    folder: Path, certificate: Path | None, port: int, service_ports: Sequence[int]
) -> list[str]:
    site = (ROOT / "deploy/nginx/gatebell.conf").read_text(encoding="utf-8")
    # More hosts use the options that are comments in the file.
    further = r"# (?=server 10\.0\.0\.12:8000)" if len(service_ports) > 1 else r"(?=\Z)"
    for pattern, replacement in (
        (r"listen (?:80|\[::\]:80|\[::\]:443 ssl);\n", ""),
        (r"listen 443 ssl;", f"listen 127.0.0.1:{port}{' ssl' if certificate else ''};"),
        (
            r"/etc/letsencrypt/\S+?(?=;)" if certificate else r"ssl_certificate\S* \S+;",
            str(certificate or ""),
        ),
        (r"gate\.example\.com", "127.0.0.1"),
        (r"127\.0\.0\.1:8000", f"127.0.0.1:{service_ports[0]}"),
        (further, ""),
        (r"10\.0\.0\.12:8000", f"127.0.0.1:{service_ports[-1]}"),
    ):
        site, count = re.subn(pattern, replacement, site)
        assert count, pattern
    # Without `listen`, the redirecting server would take port 80, which needs root.
    site = site.replace("server {\n", f"server {{\n    listen unix:{folder}/http.sock;\n", 1)
    (folder / "site.conf").write_text(site, encoding="utf-8")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    main = (
        f"pid {folder}/nginx.pid; error_log stderr; events {{}}"
        f"http {{ access_log off; {paths} include {folder}/site.conf; }}"
    )
    (folder / "nginx.conf").write_text(main, encoding="utf-8")
    return [
        "-p",
        str(folder),
        "-e",
        "stderr",
        "-c",
        str(folder / "nginx.conf"),
        "-g",
        "daemon off;",
    ]


def _caddy(
    folder: Path, certificate: Path | None, port: int, service_ports: Sequence[int]
) -> list[str]:
    site = (ROOT / "deploy/caddy/Caddyfile").read_text(encoding="utf-8")
    head = "gate.example.com {\n"
    assert head in site
    scheme, tls = ("https", f"\ttls {certificate} {certificate}\n") if certificate else ("http", "")
    site = site.replace(head, f"{scheme}://127.0.0.1:{port} {{\n{tls}")
    hosts = " ".join(f"127.0.0.1:{each}" for each in service_ports)
    site, count = re.subn(r"reverse_proxy 127\.0\.0\.1:8000", f"reverse_proxy {hosts}", site)
    assert count == 1
    options = (
        f"{{\n\tadmin off\n\tauto_https disable_redirects\n\tstorage file_system {folder}\n}}\n"
    )
    (folder / "Caddyfile").write_text(options + site, encoding="utf-8")
    return ["run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
