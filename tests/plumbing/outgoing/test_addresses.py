"""Outgoing requests reach public addresses, and no others unless an administrator says so."""

import socket
from ipaddress import ip_address
from typing import Any

import pytest

from domain.delivery.outgoing.addresses import AddressPolicy
from domain.delivery.outgoing.errors import AddressRefusedError, NameNotFoundError
from web.outgoing.addresses import allowed_addresses

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
def test_what_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(AddressRefusedError, match="OUTGOING_PRIVATE_ADDRESSES"):
        allowed_addresses(address, 80, AddressPolicy())


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_is_allowed(address: str) -> None:
    assert AddressPolicy().refusal(ip_address(address)) is None


@pytest.mark.parametrize(
    "spelling", ["127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "localhost"]
)
def test_another_spelling_of_loopback_is_loopback(spelling: str) -> None:
    with pytest.raises(AddressRefusedError):
        allowed_addresses(spelling, 80, AddressPolicy())


def test_an_address_of_ipv4_in_ipv6_is_what_it_stands_for() -> None:
    with pytest.raises(AddressRefusedError, match="loopback"):
        allowed_addresses("::ffff:127.0.0.1", 80, AddressPolicy())
    (allowed,) = allowed_addresses("::ffff:127.0.0.1", 80, AddressPolicy.of("127.0.0.0/8"))
    assert str(allowed) == "127.0.0.1"


def test_a_network_that_is_allowed_opens_no_other() -> None:
    policy = AddressPolicy.of("127.0.0.0/8, fd00::/8")
    assert policy.refusal(ip_address("127.0.0.2")) is None
    assert policy.refusal(ip_address("fd12::1")) is None
    assert policy.refusal(ip_address("10.0.0.1")) == "a private address"
    assert policy.refusal(ip_address("::1")) == "a loopback address"


def test_of_several_addresses_those_that_are_refused_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer(monkeypatch, "10.0.0.1", "1.1.1.1", "fe80::1%eth0", "1.1.1.1")
    assert [str(each) for each in allowed_addresses("x.example", 80, AddressPolicy())] == [
        "1.1.1.1"
    ]


def test_a_name_that_is_not_known_is_told() -> None:
    with pytest.raises(NameNotFoundError, match="was not found in DNS"):
        allowed_addresses("nowhere.invalid", 80, AddressPolicy())


def answer(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let every name have these addresses."""

    def getaddrinfo(*_asked: Any, **_options: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, 80)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
