from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.imports import FINDERS
from upgrade_manager.blockers.wait import ImageWait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.blockers.conftest import FakeView
    from upgrade_manager.api.blockers import Blocker

row = pytest.param
RESPONDS = "(1) Check on a node that the source of the image responds"
HANGS = "If there is no error, CDI hangs: kubectl -n ns rollout restart deploy/cdi-deployment"
IMPORTING = {"type": "Imported", "status": "Unknown", "reason": "Importing"}
BOUND = {"type": "Bound", "status": "False", "message": "PVC iso Pending", "reason": "Pending"}


def wait(view: FakeView, *, age: float = 600, detail: str = "12 %") -> ImageWait:
    progressed = view.ago(age)
    return ImageWait(
        namespace="ns",
        name="iso",
        since=view.ago(9000),
        imported=progressed,
        detail=detail,
    )


def blockers(view: FakeView, found: ImageWait) -> Sequence[Blocker]:
    return find_blockers(FINDERS, view, [found], []).blockers


def image(*conditions: Any, backend: object = "cdi") -> dict[str, Any]:
    return {"spec": {"backend": backend}, "status": {"conditions": list(conditions)}}


def volume(*conditions: Any) -> dict[str, Any]:
    return {"status": {"conditions": list(conditions)}}


CDI = {
    "metadata": {"name": "cdi-deployment", "namespace": "ns"},
    "spec": {"replicas": 1},
    "status": {"availableReplicas": 1},
}


@pytest.fixture(autouse=True)
def _cdi(view: FakeView) -> None:
    view.found["Deployment"] = [CDI]


def pod(view: FakeView, name: str = "importer-iso", *, age: float = 90, phase: str = "Running", **fields: Any) -> Any:
    metadata = {"name": name, "namespace": "ns", "creationTimestamp": view.time(age), **fields.pop("metadata", {})}
    return {"metadata": metadata, "spec": {"nodeName": "n1"}, "status": {"phase": phase, **fields}}


def owned(claim: str) -> dict[str, Any]:
    return {"metadata": {"ownerReferences": [{"kind": "PersistentVolumeClaim", "name": claim}]}}


@pytest.mark.rule("blockers: an import without progress is named with its importer's message")
@pytest.mark.parametrize(
    ("images", "volumes", "words"),
    [
        row([], [], "12 %", id="no objects"),
        row([image(IMPORTING)], [], "12 %; Imported: Importing", id="importing"),
        row(
            [image(IMPORTING, {"type": "RetryLimitExceeded", "status": "False", "message": "unexpected EOF."})],
            [],
            "12 %; the last attempt failed: unexpected EOF; Imported: Importing",
            id="failed attempt",
        ),
        row([image()], [volume(BOUND)], "12 %; DataVolume Bound: PVC iso Pending", id="data volume"),
        row([{"spec": 1, "status": {"conditions": "x"}}], [{}], "12 %", id="wrong types"),
    ],
)
def test_import_without_progress(view: FakeView, images: list[Any], volumes: list[Any], words: str) -> None:
    view.found["VirtualMachineImage"], view.found["DataVolume"] = images, volumes
    assert blockers(view, wait(view, age=599)) == []
    (found,) = blockers(view, wait(view))
    assert (found.reason, found.kind, found.namespace, found.name) == (
        "ImportStuck",
        "VirtualMachineImage",
        "ns",
        "iso",
    )
    assert found.message == f"VirtualMachineImage ns/iso: its import makes no progress ({words})"
    assert found.remedy == f"{RESPONDS} (2) Show what it does: kubectl get datavolumes,pods -n ns (3) {HANGS}"
    assert found.since == view.ago(600)


@pytest.mark.parametrize(
    ("url", "command"),
    [
        row("http://x/a b&c", ": curl -I 'http://x/a b&c'", id="quoted"),
        row("http://user:secret@x/a", "", id="with a password"),
        row("http://x/a?token=secret", "", id="with a token"),
    ],
)
def test_source_of_the_image_is_checked_first(view: FakeView, url: str, command: str) -> None:
    view.found["VirtualMachineImage"] = [{"spec": {"url": url}}]
    (found,) = blockers(view, wait(view))
    assert found.remedy.startswith(f"{RESPONDS}{command} (2) Show ")


def test_import_without_any_words(view: FakeView) -> None:
    (found,) = blockers(view, wait(view, detail=""))
    assert found.message.endswith("(Harvester does not report why)")


def test_importer_that_does_not_run_is_named(view: FakeView) -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node."}
    view.found["Pod"] = [pod(view, phase="Pending", conditions=[unscheduled])]
    assert [(one.reason, one.kind, one.name, one.since) for one in blockers(view, wait(view))] == [
        ("PodUnschedulable", "Pod", "importer-iso", view.ago(90)),
        ("ImportStuck", "VirtualMachineImage", "iso", view.ago(600)),
    ]


def test_young_importer_is_not_a_blocker_itself(view: FakeView) -> None:
    view.found["Pod"] = [pod(view, age=59, phase="Pending")]
    assert [one.reason for one in blockers(view, wait(view))] == ["ImportStuck"]


@pytest.mark.parametrize(
    ("name", "metadata"),
    [
        row("importer-iso", {}, id="by its name"),
        row("importer-prime-u1", {}, id="of the claim that CDI exchanges"),
        row("importer-prime-u1-0a1b2c", owned("prime-u1"), id="by that claim"),
        row("importer-is-0a1b2c", owned("iso"), id="by the image's claim"),
    ],
)
def test_words_of_an_importer_that_runs(view: FakeView, name: str, metadata: dict[str, Any]) -> None:
    ended = {"lastState": {"terminated": {"exitCode": 1, "message": "404 Not Found."}}, "ready": True}
    view.found["PersistentVolumeClaim"] = [{"metadata": {"name": "iso", "uid": "u1"}}]
    old = pod(view, age=900, **owned("iso"))
    view.found["Pod"] = [old, pod(view, name, containerStatuses=[ended, None], **metadata), pod(view, "importer-x")]
    (found,) = blockers(view, wait(view))
    assert found.message == (
        f"VirtualMachineImage ns/iso: its import makes no progress (12 %; Pod {name} is Running; "
        "it was restarted after: 404 Not Found)"
    )
    assert found.remedy == f"{RESPONDS} (2) Show what it does: kubectl logs -n ns {name} (3) {HANGS}"


def test_import_without_cdi_reads_the_image_alone(view: FakeView) -> None:
    view.found["VirtualMachineImage"] = [image(IMPORTING, backend="backingimage")]
    assert len(blockers(view, wait(view))) == 1
    assert [one.resource.kind for one in view.read] == ["VirtualMachineImage"]


def test_missing_kind_does_not_hide_the_image(view: FakeView) -> None:
    view.found["VirtualMachineImage"] = [image(IMPORTING)]
    view.errors["DataVolume"] = "list datavolumes.cdi.kubevirt.io: 404"
    (found,) = blockers(view, wait(view))
    assert found.message.endswith("(12 %; Imported: Importing; list datavolumes.cdi.kubevirt.io: 404)")


def test_known_blocker_stays_until_the_image_is_listed(view: FakeView) -> None:
    (known,) = blockers(view, wait(view))
    view.errors["VirtualMachineImage"] = ""
    assert find_blockers(FINDERS, view, [wait(view)], [known]).blockers == [known]


def test_hostile_words_become_short_lines(view: FakeView) -> None:
    view.found["VirtualMachineImage"] = [image({**IMPORTING, "message": "\x1b]0;x\x07" + "y" * 1_000_000})]
    (found,) = blockers(view, wait(view, detail="z" * 1_000_000))
    assert found.message.isprintable()
    assert len(found.message) < 800


@pytest.mark.rule("blockers: a controller that does not run explains the import that waits for it")
def test_import_without_its_controller_names_the_deployment(view: FakeView) -> None:
    view.found["Deployment"] = [{**CDI, "spec": {"replicas": 0}, "status": {}}]
    (found,) = blockers(view, wait(view))
    assert "(Deployment ns/cdi-deployment is scaled to 0 replicas; 12 %)" in found.message
    scale = "kubectl -n ns scale deploy/cdi-deployment --replicas"
    assert found.remedy == f"Start it: {scale}=1"
