"""Tests of the commands for the container registry."""

from pathlib import Path

import pytest
import yaml
from cryptography import x509

from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


def test_certificates_are_printed_and_written(gatebell: LiveGatebell, tmp_path: Path) -> None:
    printed = gatebell.cli("registry", "certificates")
    file = tmp_path / "bundle.pem"
    assert gatebell.cli("registry", "certificates", "--write", str(file))["written"] == str(file)
    assert file.read_text() == printed["certificates"]
    kinds = [each["state"] for each in printed["keys"]]
    assert len(x509.load_pem_x509_certificates(file.read_bytes())) == len(kinds)
    assert kinds.count("signing") == 1
    done = gatebell.run_cli("registry", "certificates", "--write", str(tmp_path / "no" / "where"))
    assert done.returncode == 1
    assert "cannot be written" in done.stderr


def test_a_key_is_created_with_a_notice_period(gatebell: LiveGatebell) -> None:
    made = gatebell.cli("registry", "rotate-key", "--notice-hours", "48")
    assert made["keys"][0]["kid"] == made["kid"]
    assert made["keys"][0]["state"] == "waiting"
    for hours in ("-1", "2161", "99999999999999"):
        done = gatebell.run_cli("registry", "rotate-key", "--notice-hours", hours)
        assert done.returncode == 2
        assert "--notice-hours" in done.stderr
    now = gatebell.cli("registry", "rotate-key", "--notice-hours", "0", "--forget-former")
    assert [each["state"] for each in now["keys"]] == ["signing"]


def test_the_printed_configuration_is_complete(gatebell: LiveGatebell) -> None:
    printed = gatebell.cli("registry", "configuration")
    ready = yaml.safe_load(printed["configuration"])
    assert ready["auth"]["token"]["service"] == "container_registry"
    assert printed["bundle"] == f"{gatebell.url}/jwt/certificates"
