"""Requirements of the service and its checks are pinned with hashes and allowed licenses."""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata

import pytest

from tests.support.service.live import ROOT

PINNED = (
    *("requirements.txt", "requirements-dev.txt", "requirements-fuzz.txt"),
    "tests/stories/canaille/requirements.txt",
)
#: Names of SPDX, and names of classifiers for packages without a license expression.
ALLOWED = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0"),
        *("PSF-2.0", "ZPL-2.1", "Apache Software License", "BSD License", "ISC License (ISCL)"),
        *("MIT License", "Python Software Foundation License"),
        "The Unlicense (Unlicense)",
        # They only restrict changes to the package itself, and the project makes none.
        *("MPL-2.0", "Mozilla Public License 2.0 (MPL 2.0)", "LGPL-3.0-only"),
        "GNU Lesser General Public License v3 (LGPLv3)",
    }
)
#: Packages that are not installed with the service, and the license that their metadata omit.
LOOKED_AT = {
    "axe-playwright-python": "MIT, in the file LICENSE that it brings; its axe.min.js is MPL-2.0",
    "docutils": "public domain, but for files under BSD-2-Clause and one of Emacs under the GPL, "
    "as its COPYING.rst says; it builds the site of the documents",
    "pagerduty": "MIT, in the file LICENSE of its repository; the package brings none",
}
_PIN = re.compile(r"^([\w.-]+)==\S+.*(?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)*", re.MULTILINE)


def licenses_of(package: str) -> set[str]:
    """Return the names of the licenses that an installed package declares."""
    found = metadata(package)
    if "License-Expression" in found:
        return set(re.split(r"[() ]+(?:AND|OR)?[() ]*", found["License-Expression"])) - {""}
    classifiers = found.get_all("Classifier", [])
    stated = {each.split(" :: ")[-1] for each in classifiers if each.startswith("License ::")}
    stated -= {"OSI Approved", "DFSG approved"}  # They name no license.
    return stated or set(found.get_all("License", ["none"]))


def pins(file: str) -> Iterator[re.Match[str]]:
    return _PIN.finditer((ROOT / file).read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", PINNED)
def test_every_pin_has_the_hashes_of_its_files(file: str) -> None:
    found = list(pins(file))
    assert found
    assert [each[1] for each in found if "--hash" not in each[0]] == []


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-dev.txt"])
def test_the_license_of_every_pin_is_allowed(file: str) -> None:
    refused = {}
    for each in pins(file):
        try:
            licences = licenses_of(each[1])
        except PackageNotFoundError:  # The pin is for another Python version or system.
            assert " ; " in each[0], each[1]
            continue
        if each[1] not in LOOKED_AT and not licences <= ALLOWED:
            refused[each[1]] = licences
    assert refused == {}


def test_manually_checked_packages_are_not_part_of_the_service() -> None:
    assert LOOKED_AT.keys().isdisjoint(each[1] for each in pins("requirements.txt"))
