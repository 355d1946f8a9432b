"""The releases that `upgrade-manager preflight --versions` lists."""

from __future__ import annotations

import json

import pytest

from hack.simulation import Simulation
from tests.support.webhook.passing_plans import put
from tests.support.webhook.surroundings import IsoServers, as_user
from upgrade_manager.cli.version_list import document, table
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Forbidden
from upgrade_manager.kube.resources import VERSIONS
from webhook.preflight.iso_server import IsoResponse
from webhook.preflight.versions import Release, Releases, read_releases

SUM = "ab" * 64
NO_SUM = "Set spec.isoChecksum to the SHA-512 of the ISO: nothing shows that the ISO is the release's"
BUILD = "master-1a2b3c4d is not a release, and its steps are unknown. Known are the upgrades"
#: Name, minimum and URL of the Versions beside the scenario's v1.8.0.
VERSIONS_BESIDE = [
    ("v1.9.0", "v1.8.0", "http://x/missing.iso"),
    ("v1.8.0-rc2", "", ""),
    ("v1.7.1", "", "http://x/small.iso"),
    ("master-1a2b3c4d", "", "http://x/a.iso"),
]
ISOS = {
    "http://x/missing.iso": IsoResponse(status=404, size=None),
    "http://x/small.iso": IsoResponse(status=200, size=900),
}


async def listed(simulation: Simulation, *, client: Client | None = None, skip_iso: bool = False) -> Releases:
    for name, minimum, url in VERSIONS_BESIDE:
        spec = {"isoURL": url, "minUpgradableVersion": minimum, "isoChecksum": SUM if url else "", "releaseDate": "x"}
        await put(simulation, VERSIONS, name, spec)
    return await read_releases(client or simulation.client(), IsoServers({**ISOS}), skip_iso=skip_iso)


@pytest.mark.rule("admission: preflight lists the releases that the cluster knows, with what each needs")
async def test_releases_are_listed_with_what_each_needs() -> None:
    async with Simulation() as simulation:
        found = await listed(simulation)
    assert found.running == "v1.7.1"
    facts = [(one.name, one.minimum, one.is_known, one.is_reachable) for one in found.releases]
    assert facts == [
        ("master-1a2b3c4d", "", False, True),
        ("v1.7.1", "", True, True),
        ("v1.8.0-rc2", "", True, False),
        ("v1.8.0", "v1.7.0", True, True),
        ("v1.9.0", "v1.8.0", False, False),
    ]
    build, same, candidate, release, newer = found.releases
    assert [BUILD in one for one in build.needs] == [True]
    assert same.needs == ("Nothing to do: all 3 nodes run v1.7.1",)
    assert same.remarks[0].startswith("ISO: the file has 1 KiB")
    assert candidate.needs == ("Version harvester-system/v1.8.0-rc2 lacks spec.isoURL. Set it to the URL of the ISO",)
    assert candidate.remarks == (NO_SUM,)
    assert (release.needs, release.remarks) == ((), ())
    assert "running version v1.7.1 is too old for this release" in newer.needs[0]
    assert newer.needs[1:] == ("ISO: HTTP 404 Not Found. Correct spec.isoURL of the Version",)


async def test_isos_are_not_asked_for_if_they_are_skipped() -> None:
    async with Simulation() as simulation:
        found = await listed(simulation, skip_iso=True)
    assert [one.is_reachable for one in found.releases] == [None, None, False, None, None]


async def test_missing_permission_is_raised() -> None:
    async with Simulation() as simulation:
        with pytest.raises(Forbidden):
            await listed(simulation, client=as_user(simulation, "alice"))


FOUND = Releases(
    running="v1.7.1",
    releases=[
        Release(name="v1.8.0", minimum="v1.7.0", is_known=True, is_reachable=True, needs=(), remarks=()),
        Release(
            name="v1.9.0-rc1",
            minimum="",
            is_known=False,
            is_reachable=None,
            needs=("A.", "B."),
            remarks=("R",),
        ),
    ],
)
TABLE = """\
Context c

VERSION     MINIMUM  STEPS    ISO        NEEDS
v1.8.0      v1.7.0   known    reachable  nothing
v1.9.0-rc1  any      unknown  not asked  A.
                                         B.
                                         R
"""


def test_table_has_a_line_for_each_need() -> None:
    assert table(FOUND, head="Context c") == TABLE
    none = Releases(running="v1.7.1", releases=[])
    assert table(none, head="Context c").splitlines()[-1].startswith("No Version in harvester-system")


def test_document_has_the_same_facts() -> None:
    found = json.loads(document(FOUND, context="c", server="https://s"))
    assert (found["context"], found["server"], found["runningVersion"]) == ("c", "https://s", "v1.7.1")
    assert found["versions"][1] == {
        "name": "v1.9.0-rc1",
        "minUpgradableVersion": "",
        "stepsKnown": False,
        "isoReachable": None,
        "needs": ["A.", "B."],
        "remarks": ["R"],
    }
