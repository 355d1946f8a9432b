from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hack.host.network import RANDOM, add_card, add_device, mac
from upgrade_manager.toolkit.host.host_tree import HostTree
from upgrade_manager.toolkit.host.network_cards import NetworkCard, physical_cards
from upgrade_manager.toolkit.run.errors import StepFailed

OWN, BOND = mac(1), mac(99)


def _lost_address(root: Path) -> None:
    add_card(root, "enp1s0", mac=OWN)
    (root / "sys/class/net/enp1s0/address").unlink()


@pytest.mark.parametrize(
    ("build", "found"),
    [
        pytest.param(lambda root: (root / "sys").mkdir(), [], id="no devices"),
        pytest.param(lambda root: add_card(root, "enp1s0", mac=OWN), [("enp1s0", OWN)], id="card"),
        pytest.param(lambda root: add_card(root, "enp1s0", mac=OWN.upper()), [("enp1s0", OWN)], id="upper case"),
        pytest.param(lambda root: add_card(root, "enp1s0", mac=OWN, bond=BOND), [("enp1s0", OWN)], id="in a bond"),
        pytest.param(lambda root: add_card(root, "eth0", mac=OWN), [], id="name of the kernel"),
        pytest.param(lambda root: add_device(root, "enp1s0.7", mac=OWN), [], id="VLAN"),
        pytest.param(lambda root: add_device(root, "mgmt-bo", mac=OWN), [], id="bond"),
        pytest.param(
            lambda root: add_card(root, "enp1s0v3", mac=OWN, is_virtual_function=True), [], id="virtual function"
        ),
        pytest.param(lambda root: add_card(root, "enp1s0", mac=OWN, assigned=RANDOM), [], id="MAC of the kernel"),
        pytest.param(lambda root: add_card(root, "enp1s0", mac="80:00:02:08:fe:80:00:00"), [], id="InfiniBand"),
        pytest.param(_lost_address, [], id="unplugged meanwhile"),
    ],
)
def test_cards(tmp_path: Path, build: Callable[[Path], object], found: list[tuple[str, str]]) -> None:
    build(tmp_path)
    assert physical_cards(HostTree(tmp_path)) == [NetworkCard(name=name, mac=one) for name, one in found]


def test_cards_are_in_order(tmp_path: Path) -> None:
    for number in (3, 1, 2):
        add_card(tmp_path, f"eno{number}", mac=mac(number))
    assert [card.name for card in physical_cards(HostTree(tmp_path))] == ["eno1", "eno2", "eno3"]


def test_links_of_the_kernel_are_followed(tmp_path: Path) -> None:
    folder = tmp_path / "sys/devices/pci0000:00/0000:00:02.0"
    (folder / "net/enp2s0").mkdir(parents=True)
    (folder / "net/enp2s0/device").symlink_to("../../../0000:00:02.0")
    (folder / "net/enp2s0/address").write_text(f"{OWN}\n")
    (tmp_path / "sys/class/net").mkdir(parents=True)
    (tmp_path / "sys/class/net/enp2s0").symlink_to("../../devices/pci0000:00/0000:00:02.0/net/enp2s0")
    assert physical_cards(HostTree(tmp_path)) == [NetworkCard(name="enp2s0", mac=OWN)]


@pytest.mark.parametrize("file", ["address", "addr_assign_type", "bonding_slave/perm_hwaddr"])
def test_file_that_cannot_be_read_is_an_error(tmp_path: Path, file: str) -> None:
    add_card(tmp_path, "enp1s0", mac=OWN, bond=BOND)
    path = tmp_path / "sys/class/net/enp1s0" / file
    path.unlink()
    path.mkdir()
    if file == "address":
        (tmp_path / "sys/class/net/enp1s0/bonding_slave/perm_hwaddr").unlink()
    with pytest.raises(StepFailed, match=rf"^the node's NICs cannot be read: .*/{file}: Is a directory$"):
        physical_cards(HostTree(tmp_path))
