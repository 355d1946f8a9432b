"""The obstacles of a node that holds the upgrade up, and their remedies."""

from __future__ import annotations

import pytest

from upgrade_manager.facts import node_obstacles

NEW, OLD, SINCE = "Harvester v1.8.0", "Harvester v1.7.1", "2026-01-01T00:00:00Z"
START = (
    "Check the console of node n1, and start it",
    "Show its conditions: kubectl describe node n1",
)
RESET = ("Check the console of node n1, and start it; if it does not boot, reset it once, so that its fallback starts",)
BOOT = (
    "Find out on node n1 why it booted the fallback: journalctl -b -1 --no-pager -n 100",
    "The node is drained: reboot it, and select the entry that is not the fallback in the menu on its console",
)

FIND = (
    "Find out on node n1 whether it has rebooted: journalctl --list-boots --no-pager",
    "The node is drained: if it has not rebooted, reboot it",
)


@pytest.mark.rule("nodes: a done node that is NotReady or runs another OS holds the phase, and is named")
@pytest.mark.parametrize(
    ("os_image", "is_ready", "since", "why", "ways_out"),
    [
        pytest.param(NEW, False, "", f"it is not Ready; it last reported {NEW}", START, id="not Ready"),
        pytest.param(
            NEW,
            False,
            SINCE,
            f"it has not been Ready since 00:00 UTC on 1 January; it last reported {NEW}",
            START,
            id="not Ready since a time",
        ),
        pytest.param(
            OLD,
            False,
            "",
            f"it is not Ready; it last reported {OLD}",
            (*RESET, START[1]),
            id="not Ready on another OS",
        ),
        pytest.param(OLD, True, SINCE, f"it runs {OLD} instead of {NEW}", BOOT, id="another OS"),
        pytest.param("", True, "", f"it runs an unknown OS instead of {NEW}", BOOT, id="no OS"),
    ],
)
def test_node_that_is_not_back(
    os_image: str, since: str, why: str, ways_out: tuple[str, ...], *, is_ready: bool
) -> None:
    found = node_obstacles.not_back("n1", os_image=os_image, release_os=NEW, is_ready=is_ready, since=since)
    assert found is not None
    assert (found.why, tuple(map(str, found.ways_out))) == (why, ways_out)


def test_cordoned_node_needs_one_command() -> None:
    assert [*map(str, node_obstacles.cordoned("n1").ways_out)] == ["Uncordon it: kubectl uncordon n1"]


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        pytest.param(1, "it runs Kubernetes v1 already, but Rancher has not drained it", id="one"),
        pytest.param(2, "they run Kubernetes v1 already, but Rancher has not drained them", id="several"),
    ],
)
def test_undrained_nodes(nodes: int, text: str) -> None:
    assert node_obstacles.undrained("v1", nodes=nodes) == text


@pytest.mark.rule("nodes: a node fell back only once it is Ready in another boot with the old OS")
@pytest.mark.parametrize(
    ("os_image", "has_rebooted", "why", "ways_out"),
    [
        pytest.param(
            OLD,
            True,
            f"it rebooted at 00:00 UTC on 1 January into the old system, {OLD} (boot fallback)",
            BOOT,
            id="rebooted",
        ),
        pytest.param(OLD, False, f"it runs {OLD} instead of {NEW}", FIND, id="not known to have rebooted"),
        pytest.param("", True, f"it runs an unknown OS instead of {NEW}", BOOT, id="rebooted, unknown OS"),
    ],
)
def test_node_that_fell_back_has_rebooted(
    os_image: str, why: str, ways_out: tuple[str, ...], *, has_rebooted: bool
) -> None:
    reboot = node_obstacles.Reboot.of(is_awaited=True, is_done=has_rebooted)
    found = node_obstacles.not_back("n1", os_image=os_image, release_os=NEW, is_ready=True, since=SINCE, reboot=reboot)
    assert found is not None
    assert (found.why, tuple(map(str, found.ways_out))) == (why, ways_out)
