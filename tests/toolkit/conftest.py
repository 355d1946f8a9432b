from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import tiers
from tests.support.cluster.simulate import Simulate, embedded, simulate_on
from tests.support.managers.sweep import Sweep
from upgrade_manager.toolkit.host.host_programs import ChrootPrograms


@pytest.fixture
def simulate(request: pytest.FixtureRequest) -> Simulate:
    """Return the factory of simulated clusters on the test's API server."""
    if tiers.server_of(request.node) == tiers.REAL:
        return simulate_on(request.getfixturevalue("control_plane"))
    return embedded


@pytest.fixture
def sweep(request: pytest.FixtureRequest) -> Sweep:
    return Sweep(tier=request.config.getoption("tier"))


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChrootPrograms:
    """Run programs of this machine without root's rights; the root only shows in a variable."""
    chroot = tmp_path / "bin/chroot"
    chroot.parent.mkdir()
    chroot.write_text('#!/bin/sh\nROOT_DIRECTORY="$1"; export ROOT_DIRECTORY; shift; exec "$@"\n')
    chroot.chmod(0o755)
    monkeypatch.setenv("PATH", str(chroot.parent), prepend=":")
    return ChrootPrograms(tmp_path / "host")
