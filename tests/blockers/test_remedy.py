"""Remedies that several finders share."""

from __future__ import annotations

import pytest

from upgrade_manager.blockers.remedy import permissions

ACCOUNT = "system:serviceaccount:harvester-system:harvester-upgrade-manager"


@pytest.mark.parametrize(("namespace", "place"), [("", ""), ("ns", " -n ns")], ids=["cluster", "namespace"])
def test_permissions_are_checked_as_the_manager(namespace: str, place: str) -> None:
    assert permissions(namespace).command == f"kubectl auth can-i --list{place} --as={ACCOUNT}"
