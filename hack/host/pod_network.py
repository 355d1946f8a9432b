"""A network of Pods: one network namespace per Pod, joined by a bridge; as root, in a separate network namespace."""

from __future__ import annotations

import subprocess
from typing import Self

#: The bridge, and the addresses of Pods.
BRIDGE = "pods"
GATEWAY = "10.52.255.254"
_BITS = 16
#: The longest name of an interface.
_NAME = 8


class PodNetwork:
    """Creates the bridge while its context is entered. Raises CalledProcessError without the rights."""

    def __init__(self) -> None:
        #: Addresses by the Pod's uid.
        self._addresses: dict[str, str] = {}

    def __enter__(self) -> Self:
        _ip("link", "set", "lo", "up")
        _ip("link", "add", BRIDGE, "type", "bridge")
        _ip("address", "add", f"{GATEWAY}/{_BITS}", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        return self

    def __exit__(self, *_: object) -> None:
        for uid in [*self._addresses]:
            self.detach(uid)
        _ip("link", "delete", BRIDGE)

    def own(self, address: str) -> None:
        """Add an address of this machine that Pods reach, such as a Service's."""
        _ip("address", "add", f"{address}/32", "dev", BRIDGE)

    def has(self, address: str) -> bool:
        """Report whether a Pod has the address."""
        return address in self._addresses.values()

    def attach(self, uid: str, address: str) -> str:
        """Create a Pod's network namespace with its address, unless it exists; return its name."""
        namespace = _namespace(uid)
        if uid in self._addresses:
            return namespace
        self._addresses[uid] = address
        outside, inside = _outside(uid), ("-n", namespace)
        _ip("netns", "add", namespace)
        _ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        _ip("link", "set", outside, "master", BRIDGE, "up")
        _ip(*inside, "address", "add", f"{address}/{_BITS}", "dev", "eth0")
        _ip(*inside, "link", "set", "lo", "up")
        _ip(*inside, "link", "set", "eth0", "up")
        _ip(*inside, "route", "add", "default", "via", GATEWAY)
        return namespace

    def detach(self, uid: str) -> None:
        """Delete a Pod's network namespace, if it exists."""
        if self._addresses.pop(uid, ""):
            # The kernel removes a namespace's devices some time after the namespace, and a Pod may be attached again.
            _ip("link", "delete", _outside(uid))
            _ip("netns", "delete", _namespace(uid))


def _outside(uid: str) -> str:
    return f"veth{uid[:_NAME]}"


def _namespace(uid: str) -> str:
    return f"pod-{uid}"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, stdin=subprocess.DEVNULL)
