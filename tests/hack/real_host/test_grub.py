"""GRUB's environment block."""

from __future__ import annotations

from hack.real_host import grub


def test_environment_has_the_size_that_grub_reads() -> None:
    block = grub.environment(enable_boot_assessment="yes")
    assert len(block) == len(grub.environment()) == 1024
    assert block.startswith(b"# GRUB Environment Block\nenable_boot_assessment=yes\n#")


def test_configuration_uses_the_variables_of_the_assessment() -> None:
    assert f'"${{{grub.ASSESSED}}}" = yes' in grub.CONFIG
    assert grub.CONFIG.count("{") == grub.CONFIG.count("}") == 3
