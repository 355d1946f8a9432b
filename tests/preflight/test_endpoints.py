from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.preflight.endpoints import endpoints_of

HTTPS = {"name": "https", "port": 6443, "protocol": "TCP"}


def piece(*addresses: str, ports: Any = (HTTPS,), **conditions: Any) -> dict[str, Any]:
    return {
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": conditions} for address in addresses],
        "ports": list(ports) if isinstance(ports, tuple) else ports,
    }


@pytest.mark.rule("pipeline: every API server endpoint in the EndpointSlices of default/kubernetes is checked")
@pytest.mark.parametrize(
    ("slices", "endpoints"),
    [
        pytest.param([piece("10.0.0.1")], ["10.0.0.1:6443"], id="IPv4"),
        pytest.param([piece("fd00:0:0::1")], ["[fd00::1]:6443"], id="IPv6"),
        pytest.param([piece("API.example.org.")], ["api.example.org:6443"], id="FQDN"),
        pytest.param([piece("10.0.0.2", "10.0.0.1")], ["10.0.0.1:6443", "10.0.0.2:6443"], id="several endpoints"),
        pytest.param([piece("10.0.0.1"), piece("fd00::1")], ["10.0.0.1:6443", "[fd00::1]:6443"], id="two slices"),
        pytest.param([piece("10.0.0.1"), piece("10.0.0.1")], ["10.0.0.1:6443"], id="the same in two slices"),
        pytest.param([piece("fd00::1", "FD00:0::1")], ["[fd00::1]:6443"], id="two spellings of one address"),
        pytest.param(
            [piece("10.0.0.1", ports=(HTTPS, {"name": "more", "port": 9345}))],
            ["10.0.0.1:6443", "10.0.0.1:9345"],
            id="several ports",
        ),
        pytest.param([piece("10.0.0.1", ready=False)], ["10.0.0.1:6443"], id="one that is not ready"),
        pytest.param([piece("10.0.0.1", ready=None)], ["10.0.0.1:6443"], id="one of unknown state"),
        pytest.param([piece("10.0.0.1", ports=({"port": 6443},))], ["10.0.0.1:6443"], id="TCP unless it says"),
        pytest.param([piece("10.0.0.1", ports=(HTTPS, {"port": 53, "protocol": "UDP"}))], ["10.0.0.1:6443"], id="UDP"),
        pytest.param([piece("10.0.0.1", ports=({"name": "any"},))], [], id="a port without a number"),
        pytest.param(
            [piece("10.0.0.1", ports=({"port": 0}, {"port": 65536}, {"port": "x"}, {"port": True}))],
            [],
            id="numbers of no port",
        ),
        pytest.param([piece("10.0.0.1", ports=None)], [], id="ports are null"),
        pytest.param([{**piece(), "endpoints": None}], [], id="endpoints are null"),
        pytest.param(
            [{**piece(), "endpoints": [None, {}, {"addresses": None}, {"addresses": ["", 7]}]}],
            [],
            id="endpoints without an address",
        ),
        pytest.param([{}], [], id="an empty slice"),
        pytest.param([], [], id="no slice"),
    ],
)
def test_endpoints_are_unique(slices: list[Any], endpoints: list[str]) -> None:
    assert [str(endpoint) for endpoint in endpoints_of(slices)] == endpoints
