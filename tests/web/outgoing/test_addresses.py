"""Tests that outgoing requests reach only public or explicitly allowed addresses."""

import socket
from ipaddress import ip_address
from typing import Any

import pytest

from domain.delivery.outgoing.errors import AddressBlockedError, HostNotFoundError
from domain.delivery.outgoing.ip_address_policy import AddressPolicy
from web.outgoing.addresses import resolve_allowed_addresses

REFUSED = (
    *("0.0.0.1", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254"),
    *("168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192"),
    *("192.0.2.7", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.9", "224.0.0.1"),
    *("239.255.255.250", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "fc00::1"),
    *("fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "2001::1", "2001:db8::1"),
    *("2002:7f00:1::1", "3fff::1", "4000::1"),
)
PUBLIC = ("1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111")


@pytest.mark.advisory("CVE-2020-13379")
@pytest.mark.parametrize("address", REFUSED)
def test_a_non_public_address_is_rejected(address: str) -> None:
    with pytest.raises(AddressBlockedError, match="OUTGOING_PRIVATE_ADDRESSES"):
        resolve_allowed_addresses(address, 80, AddressPolicy())


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert AddressPolicy().find_blocked_address_kind(ip_address(address)) is None


@pytest.mark.parametrize(
    "spelling", ["127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "localhost"]
)
def test_alternative_spellings_of_loopback_are_rejected(spelling: str) -> None:
    with pytest.raises(AddressBlockedError):
        resolve_allowed_addresses(spelling, 80, AddressPolicy())


def test_an_ipv4_mapped_ipv6_address_is_treated_as_ipv4() -> None:
    with pytest.raises(AddressBlockedError, match="loopback"):
        resolve_allowed_addresses("::ffff:127.0.0.1", 80, AddressPolicy())
    (allowed,) = resolve_allowed_addresses(
        "::ffff:127.0.0.1", 80, AddressPolicy.from_networks("127.0.0.0/8")
    )
    assert str(allowed) == "127.0.0.1"


def test_an_allowed_network_does_not_allow_others() -> None:
    policy = AddressPolicy.from_networks("127.0.0.0/8, fd00::/8")
    assert policy.find_blocked_address_kind(ip_address("127.0.0.2")) is None
    assert policy.find_blocked_address_kind(ip_address("fd12::1")) is None
    assert policy.find_blocked_address_kind(ip_address("10.0.0.1")) == "a private address"
    assert policy.find_blocked_address_kind(ip_address("::1")) == "a loopback address"


def test_forbidden_addresses_of_a_name_are_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer(monkeypatch, "10.0.0.1", "1.1.1.1", "fe80::1%eth0", "1.1.1.1")
    assert [str(each) for each in resolve_allowed_addresses("x.example", 80, AddressPolicy())] == [
        "1.1.1.1"
    ]


def test_an_unknown_name_is_reported() -> None:
    with pytest.raises(HostNotFoundError, match="was not found in DNS"):
        resolve_allowed_addresses("nowhere.invalid", 80, AddressPolicy())


def answer(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Resolve every name to these addresses."""

    def getaddrinfo(*_asked: Any, **_options: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, 80)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
