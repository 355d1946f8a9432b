from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from upgrade_manager.api.status import VersionSnapshot


def test_a_model_cannot_be_changed() -> None:
    snapshot = VersionSnapshot(iso_url="https://example.org/iso")
    with pytest.raises(ValidationError):
        snapshot.iso_url = "https://example.org/other"  # type: ignore[misc]


def test_a_model_is_made_by_our_names_and_written_by_those_on_the_wire() -> None:
    assert VersionSnapshot(iso_url="https://example.org/iso").dump() == {"isoURL": "https://example.org/iso"}


def test_a_value_of_another_type_reads_as_absent() -> None:
    assert VersionSnapshot.read({"isoURL": 3, "isoChecksum": "00"}) == VersionSnapshot(iso_url="", iso_checksum="00")


#: Prints the top-level modules that reading a plan needs.
LISTING = """
import sys
import upgrade_manager.api.upgrade_plan, upgrade_manager.api.version
print(*{name.partition(".")[0] for name in sys.modules})
"""


def test_describing_a_plan_needs_no_network_and_no_client_library() -> None:
    command = [sys.executable, "-c", LISTING]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)  # noqa: S603  # our own
    loaded = set(done.stdout.split())
    assert "pydantic" in loaded
    assert not {"aiohttp", "kubernetes_asyncio", "yaml", "structlog", "asyncio", "cryptography"} & loaded
