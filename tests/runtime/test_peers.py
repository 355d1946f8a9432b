from __future__ import annotations

from ipaddress import ip_address
from unittest.mock import Mock

import pytest

from upgrade_manager.runtime.peers import UNKNOWN, Peer, Peers, largest, parse_address

API_SERVERS = ("10.53.0.1", "fd00::1")
A, B, API, API2 = Peer("a"), Peer("b"), Peer("api", goes_last=True), Peer("api2", goes_last=True)


def peers() -> Peers:
    found = Peers()
    found.api_servers = frozenset(map(ip_address, API_SERVERS))
    return found


@pytest.mark.rule("security: connections are limited for each peer, and API servers go last")
@pytest.mark.parametrize(
    ("host", "peer"),
    [
        pytest.param("10.52.0.7", Peer("10.52.0.7"), id="IPv4"),
        pytest.param("::ffff:10.52.0.7", Peer("10.52.0.7"), id="IPv4 in IPv6"),
        pytest.param("2001:db8:1:2:3:4:5:6", Peer("2001:db8:1:2::/64"), id="IPv6"),
        pytest.param("fe80::1%eth0", Peer("fe80::/64"), id="link-local"),
        pytest.param("10.53.0.1", Peer("10.53.0.1", goes_last=True), id="API server"),
        pytest.param("::ffff:10.53.0.1", Peer("10.53.0.1", goes_last=True), id="API server, IPv4 in IPv6"),
        pytest.param("fd00::1", Peer("fd00::1", goes_last=True), id="API server, IPv6"),
        pytest.param("fd00::2", Peer("fd00::/64"), id="neighbour of an API server"),
        pytest.param("", UNKNOWN, id="empty"),
        pytest.param(None, UNKNOWN, id="none"),
        pytest.param("localhost", UNKNOWN, id="name"),
    ],
)
def test_address_gives_the_peer(host: str | None, peer: Peer) -> None:
    assert peers().find(host) == peer


@pytest.mark.parametrize(
    ("transport", "peer"),
    [
        (None, UNKNOWN),
        (Mock(get_extra_info=Mock(return_value=None)), UNKNOWN),
        (Mock(get_extra_info=Mock(return_value="/run/socket")), UNKNOWN),
        (Mock(get_extra_info=Mock(return_value=("10.52.0.7", 1))), Peer("10.52.0.7")),
        (Mock(get_extra_info=Mock(return_value=("fd00::1", 1, 0, 0))), Peer("fd00::1", goes_last=True)),
    ],
)
def test_connection_gives_the_peer(transport: Mock | None, peer: Peer) -> None:
    assert peers().of(transport) == peer


def test_text_that_is_not_an_address_gives_none() -> None:
    assert parse_address("kubernetes.default") is None


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([], set()),
        ([(A, 1)], {A}),
        ([(A, 1), (B, 3), (A, 1)], {B}),
        ([(A, 1), (B, 2), (A, 1)], {A, B}),
        ([(A, 1), (API, 100)], {A}),
        ([(API, 1), (API2, 2)], {API2}),
    ],
)
def test_largest_share_is_of_a_stranger_if_there_is_one(shares: list[tuple[Peer, int]], expected: set[Peer]) -> None:
    assert largest(shares) == expected
