"""Canaille in front of OpenLDAP on loopback, set up according to docs/guides/ldap-and-saml.md.

`scripts/ensure-bridges` installs both; without them the test is skipped.
"""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import quote

from tests.support.documents.guides import Guide
from tests.support.service.live import ROOT
from tests.support.service.ports import free_port

_UNPACKED = ROOT / ".bridges"
REQUIREMENTS = ROOT / "tests" / "stories" / "canaille" / "requirements.in"
BASE = "dc=company,dc=example"
_SUPERUSER = ("-x", "-D", f"cn=admin,{BASE}", "-w", "of-the-directory")
_BRIDGE_PASSWORD = "of-the-bridge"
_SECONDS = 60
_BASH = shutil.which("bash") or "bash"
#: Directory before the guide begins, which the user who runs the tests can configure.
_CONFIGURATION = """\
dn: cn=config
objectClass: olcGlobal
cn: config

dn: cn=module,cn=config
objectClass: olcModuleList
cn: module
olcModulePath: {unpacked}/usr/lib/ldap
olcModuleLoad: back_mdb

dn: cn=schema,cn=config
objectClass: olcSchemaConfig
cn: schema

include: file://{unpacked}/etc/ldap/schema/core.ldif

include: file://{unpacked}/etc/ldap/schema/cosine.ldif

include: file://{unpacked}/etc/ldap/schema/inetorgperson.ldif

dn: olcDatabase=config,cn=config
objectClass: olcDatabaseConfig
olcDatabase: config
olcAccess: to * by dn.exact=gidNumber={gid}+uidNumber={uid},cn=peercred,cn=external,cn=auth manage

dn: olcDatabase=mdb,cn=config
objectClass: olcDatabaseConfig
objectClass: olcMdbConfig
olcDatabase: mdb
olcDbDirectory: {data}
olcSuffix: {base}
olcRootDN: cn=admin,{base}
olcRootPW: of-the-directory
olcAccess: to attrs=userPassword by self write by anonymous auth
olcAccess: to * by * read
"""
_TREE = f"""\
dn: {BASE}
objectClass: dcObject
objectClass: organization
dc: company
o: Company

dn: ou=people,{BASE}
objectClass: organizationalUnit
ou: people

dn: ou=groups,{BASE}
objectClass: organizationalUnit
ou: groups
"""


def is_installed() -> bool:
    """Return whether scripts/ensure-bridges has installed both programs."""
    return (_UNPACKED / "installed.txt").exists()


def _program(name: str) -> str:
    return str(_UNPACKED / "usr" / "sbin" / name)


def _environment(**more: str) -> dict[str, str]:
    programs = (_UNPACKED / "usr" / "bin", _UNPACKED / "usr" / "sbin", os.environ["PATH"])
    return {
        "PATH": os.pathsep.join(map(str, programs)),
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, _UNPACKED.glob("usr/lib/*-linux-gnu"))),
        "LANG": "C.UTF-8",
        **more,
    }


def _start(
    command: Sequence[str], port: int, folder: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a program, and wait until it listens on its port."""
    log = folder / f"{port}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    deadline = monotonic() + _SECONDS
    while not _listens(port):
        if process.poll() is not None or monotonic() > deadline:
            _stop(process)
            raise AssertionError(log.read_text(errors="replace"))
        sleep(0.1)
    return process


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(_SECONDS)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Directory:
    """An OpenLDAP server with people and groups."""

    def __init__(self, folder: Path) -> None:
        """Take the folder with the server's configuration."""
        self._folder = folder
        self.port = free_port()
        #: URL for changes of the configuration.
        self.configuration_url = f"ldapi://{quote(str(folder / 'ldapi'), safe='')}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        urls = f"ldap://127.0.0.1:{self.port}/ {self.configuration_url}"
        # With a log level, slapd stays in the foreground.
        command = (_program("slapd"), "-d", "0", "-F", str(self._folder / "config"), "-h", urls)
        self._process = _start(command, self.port, self._folder, _environment())

    def stop(self) -> None:
        if self._process is not None:
            _stop(self._process)
            self._process = None

    def add_person(self, uid: str, name: str, password: str) -> None:
        self.change(
            f"dn: uid={uid},ou=people,{BASE}\nobjectClass: inetOrgPerson\nuid: {uid}\n"
            f"cn: {name}\nsn: {name.rsplit(maxsplit=1)[-1]}\nmail: {uid}@company.example\n"
            f"userPassword: {password}\n",
            "-a",
        )

    def remove_person(self, uid: str) -> None:
        self.change(f"dn: uid={uid},ou=people,{BASE}\nchangetype: delete\n")

    def add_group(self, name: str, *uids: str) -> None:
        members = "".join(f"member: uid={uid},ou=people,{BASE}\n" for uid in uids)
        dn = f"cn={name},ou=groups,{BASE}"
        self.change(f"dn: {dn}\nobjectClass: groupOfNames\ncn: {name}\n{members}", "-a")

    def remove_member(self, group: str, uid: str) -> None:
        dn, member = f"cn={group},ou=groups,{BASE}", f"uid={uid},ou=people,{BASE}"
        self.change(f"dn: {dn}\nchangetype: modify\ndelete: member\nmember: {member}\n")

    def token_lifetimes(self) -> set[str]:
        """Return the lifetimes in seconds of tokens that the bridge stores in the directory."""
        return set(self._values(f"ou=tokens,ou=oauth,{BASE}", "oauthTokenLifetime"))

    def entry_uuid(self, uid: str) -> str:
        """Return the permanent id of a person, which is never used again."""
        (found,) = self._values(f"uid={uid},ou=people,{BASE}", "entryUUID")
        return found

    def change(self, ldif: str, *options: str) -> None:
        """Change entries; with the option `-a`, add them."""
        self._run("ldapmodify", *options, ldif=ldif)

    def _values(self, below: str, attribute: str) -> list[str]:
        said = self._run("ldapsearch", "-LLL", "-b", below, "(objectClass=*)", attribute)
        return re.findall(f"^{attribute}: (.*)$", said, re.MULTILINE)

    def _run(self, *command: str, ldif: str = "") -> str:
        done = subprocess.run(
            [str(_UNPACKED / "usr" / "bin" / command[0]), *_SUPERUSER, *command[1:]],
            env=_environment(LDAPURI=f"ldap://127.0.0.1:{self.port}"),
            input=ldif,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def running_directory(folder: Path) -> Iterator[Directory]:
    """Run an empty directory."""
    for name in ("config", "data"):
        (folder / name).mkdir()
    values = {"uid": os.getuid(), "gid": os.getgid(), "data": folder / "data", "base": BASE}
    configuration = folder / "config.ldif"
    configuration.write_text(_CONFIGURATION.format(unpacked=_UNPACKED, **values))
    command = (_program("slapadd"), "-n0", "-F", str(folder / "config"), "-l", str(configuration))
    subprocess.run(command, env=_environment(), check=True, timeout=_SECONDS)
    directory = Directory(folder)
    directory.start()
    try:
        directory.change(_TREE, "-a")
        yield directory
    finally:
        directory.stop()


@dataclass(frozen=True)
class Bridge:
    """Canaille, in a folder with its settings."""

    guide: Guide
    folder: Path
    issuer: str

    def run(self, block: str, **values: str) -> str:
        """Run a block of the guide with the reader's values; return what it prints."""
        return self.guide.run_shell(block, self.folder, **_environment(**values))


@contextmanager
def running_bridge(guide: Guide, directory: Directory, folder: Path) -> Iterator[Bridge]:
    """Set up a bridge in front of a directory, and run it."""
    port = free_port()
    here = {
        "BRIDGE_PASSWORD": _BRIDGE_PASSWORD,
        "ldaps://ldap.company.example": f"ldap://127.0.0.1:{directory.port}",
        "login.company.example": f"127.0.0.1:{port}",
        "127.0.0.1:5000": f"127.0.0.1:{port}",
        'PREFERRED_URL_SCHEME = "https"': 'PREFERRED_URL_SCHEME = "http"',
    }
    for name in ("configuration.ldif", "entries.ldif", "canaille.toml"):
        file = guide.write(name, folder)
        text = file.read_text(encoding="utf-8")
        for said, meant in here.items():
            text = text.replace(said, meant)
        file.write_text(text, encoding="utf-8")
    (folder / "admin-password").write_text(_SUPERUSER[-1], encoding="utf-8")
    (folder / "bridge").symlink_to(_UNPACKED / "venv")
    bridge = Bridge(guide, folder, f"http://127.0.0.1:{port}")
    bridge.run("directory.sh", LDAPURI=directory.configuration_url)
    bridge.run("secrets.sh", BRIDGE_PASSWORD=_BRIDGE_PASSWORD)
    start = str(guide.write("start.sh", folder))
    process = _start((_BASH, "-eu", start), port, folder, _environment())
    try:
        yield bridge
    finally:
        _stop(process)
