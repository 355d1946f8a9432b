"""Who may choose code and waive checks, on the real API server: no webhook runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from hack.control_plane.control_plane import ControlPlane
from tests.support.cluster.kubectl import PLANS, Cluster
from tests.support.server.audit_log import AuditLog, annotations_of, user
from tests.support.server.raw_client import JsonResponse, RawClient
from tests.support.webhook.admission_policies import (
    POLICY,
    STRANGER,
    USERS,
    acting_as,
    annotated,
    bind,
    installed,
    message,
    plan,
)
from upgrade_manager.api.annotations import WAIVER_ANNOTATIONS
from upgrade_manager.api.keys import (
    ANNOTATION_CREATED_BY,
    ANNOTATION_LAST_CHANGED_BY,
    ANNOTATION_SKIP_WEBHOOK,
    ANNOTATION_TOOLKIT_IMAGE,
    ANNOTATION_TOOLKIT_KIND,
    FINALIZER,
)
from upgrade_manager.api.phases import FAILED, PHASE_VALUES, SUCCEEDED
from upgrade_manager.api.spec import MAX_NODES

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

CHOSEN = {ANNOTATION_TOOLKIT_IMAGE: "mirror/toolkit", ANNOTATION_TOOLKIT_KIND: "own"}
WAIVED = {ANNOTATION_SKIP_WEBHOOK: "true"}
#: With everything that a role may not change.
FULL = plan("full", CHOSEN | WAIVED, force=True)
PAUSE: dict[str, Any] = {"spec": {"nodeUpgradeOption": {"pauseNodes": ["node-1"]}}}
RESUME: dict[str, Any] = {"spec": {"nodeUpgradeOption": None}}
HASH = "0" * 64
#: With the manager's finalizer.
HELD = plan("held")
HELD["metadata"]["finalizers"] = [FINALIZER]
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "deleted"}
#: (plan, patch), or (None, new plan).
ACTIONS: dict[str, tuple[str, Any]] = {
    "pause": ("plain", PAUSE),
    "resume": ("plain", RESUME),
    "pause beside a chosen image": ("full", PAUSE),
    "annotate": ("full", annotated(other="x")),
    "remove the finalizer": ("held", {"metadata": {"finalizers": None}}),
    "add another finalizer": ("held", {"metadata": {"finalizers": [FINALIZER, "example.org/x"]}}),
    # The garbage collector deletes what has an owner that does not exist.
    "add an owner": ("plain", {"metadata": {"ownerReferences": [OWNER]}}),
    "create": ("", plan("new")),
    "create with spec.upgrade": ("", plan("new", upgrade="v9")),
    "create with an image": ("", plan("new", {ANNOTATION_TOOLKIT_IMAGE: "a/b"})),
    "create with a kind": ("", plan("new", {ANNOTATION_TOOLKIT_KIND: "own"})),
    "set the image": ("plain", annotated(upgrade_toolkit_image="a/b")),
    "set an empty image": ("plain", annotated(upgrade_toolkit_image="")),
    "set the kind": ("plain", annotated(upgrade_toolkit_kind="harvester")),
    "change the image": ("full", annotated(upgrade_toolkit_image="a/b@sha256:0")),
    "remove the image": ("full", annotated(upgrade_toolkit_image=None)),
    "remove the kind": ("full", annotated(upgrade_toolkit_kind=None)),
    "remove all annotations": ("full", {"metadata": {"annotations": None}}),
    "create forced": ("", plan("new", force=True)),
    "force": ("plain", {"spec": {"force": True}}),
    "force no more": ("full", {"spec": {"force": None}}),
    **{f"create with {key[27:]}": ("", plan("new", {key: "true"})) for key in WAIVER_ANNOTATIONS},
    **{f"set {key[27:]}": ("plain", {"metadata": {"annotations": {key: "7"}}}) for key in WAIVER_ANNOTATIONS},
    "change a waiver": ("full", annotated(skip_webhook="false")),
    "remove a waiver": ("full", annotated(skip_webhook=None)),
}
CODE = {name for name in ACTIONS if name.endswith((" image", " kind"))} - {"pause beside a chosen image"}
WAIVERS = {name for name in ACTIONS if "forc" in name or "waiver" in name or name.startswith(("create with ", "set "))}
WAIVERS -= CODE | {"create with spec.upgrade"}
CREATES = {name for name, (where, _) in ACTIONS.items() if not where}
DELETES = {"remove the finalizer", "add an owner"}
#: The actions that the policy or RBAC denies.
DENIED = {
    "viewer": {*ACTIONS},
    "operator": CODE | WAIVERS | CREATES | DELETES | {"remove all annotations"},
    "editor": CODE | {"remove all annotations"},
    "admin": set[str](),
}


@pytest.fixture
async def guarded(cluster: Cluster) -> AsyncIterator[Cluster]:
    """Provide a cluster with policy and roles, and three plans."""
    async with installed(cluster):
        for one in (plan("plain"), FULL, HELD):
            assert (await acting_as(cluster, "admin").post(PLANS, one)).status == 201
        yield cluster
        assert (await cluster.wire.patch(f"{PLANS}/held", {"metadata": {"finalizers": None}})).status == 200


async def attempt(wire: RawClient, where: str, body: Any) -> JsonResponse:
    if where:
        return await wire.patch(f"{PLANS}/{where}", body, dryRun="All")
    return await wire.post(PLANS, body, dryRun="All")


@pytest.mark.rule(
    "security: an operator pauses and resumes, an editor also creates, deletes and waives",
    "security: only an admin sets, changes or removes the toolkit image",
)
@pytest.mark.parametrize("role", USERS)
async def test_role_does_what_it_may(guarded: Cluster, role: str) -> None:
    assert {f"set {key[27:]}" for key in WAIVER_ANNOTATIONS} <= WAIVERS
    answers = {name: await attempt(acting_as(guarded, role), *action) for name, action in ACTIONS.items()}
    assert {name for name, answer in answers.items() if answer.status == 403} == DENIED[role]
    assert {answer.status for name, answer in answers.items() if name not in DENIED[role]} <= {200, 201}
    reads = await acting_as(guarded, role).get(f"{PLANS}/full")
    status = await acting_as(guarded, role).patch(f"{PLANS}/full/status", {"status": {"currentPhase": "Failed"}})
    deletion = await acting_as(guarded, role).delete(f"{PLANS}/plain", dryRun="All")
    deletions = await acting_as(guarded, role).delete(PLANS, dryRun="All")
    may_delete, may_delete_all = role in {"editor", "admin"}, role == "admin"
    statuses = [answer.status for answer in (reads, status, deletion, deletions)]
    assert statuses == [200, 403, 200 if may_delete else 403, 200 if may_delete_all else 403]


@pytest.mark.rule("security: the toolkit image is immutable while a plan runs, for everyone")
async def test_image_is_immutable_while_the_plan_runs(guarded: Cluster) -> None:
    found = {}
    changes = [annotated(upgrade_toolkit_image="c/d"), annotated(upgrade_toolkit_kind=None), PAUSE, annotated(a="b")]
    for phase in (*PHASE_VALUES, SUCCEEDED, FAILED):
        answer = await guarded.wire.patch(f"{PLANS}/full/status", {"status": {"currentPhase": phase}})
        assert answer.status == 200, answer.body
        answers = [await attempt(acting_as(guarded, "admin"), "full", change) for change in changes]
        found[phase] = [answer.status for answer in answers]
        if phase == "NodeUpgrading":
            assert message(answers[0]) == (
                f"{ANNOTATION_TOOLKIT_IMAGE} cannot change in phase NodeUpgrading; the toolkit image can be changed "
                "before the upgrade starts and after it has failed"
            )
    running = {phase: [422, 422, 200, 200] for phase in (*PHASE_VALUES, SUCCEEDED)}
    assert found == running | {FAILED: [200] * 4}
    assert (await attempt(acting_as(guarded, "admin"), "plain", annotated(upgrade_toolkit_image="c/d"))).status == 200


async def test_status_endpoint_changes_no_annotation(guarded: Cluster) -> None:
    patch = annotated(upgrade_toolkit_image="via/status") | {"status": {"currentPhase": "Failed"}}
    assert (await guarded.wire.patch(f"{PLANS}/full/status", patch)).status == 200
    found = (await guarded.wire.get(f"{PLANS}/full")).body
    assert found["metadata"]["annotations"][ANNOTATION_TOOLKIT_IMAGE] == "mirror/toolkit"


PLAN = "upgradeplans.management.harvesterhci.io"


IMAGE, KIND = ANNOTATION_TOOLKIT_IMAGE, ANNOTATION_TOOLKIT_KIND
#: A plan, a change of it, what is changed, the verb that this needs, and the first role that has it.
REFUSALS = [
    ("full", f"annotate --overwrite {PLAN} full {IMAGE}=a/b", IMAGE, "set-toolkit-image", "admin"),
    ("full", f"annotate {PLAN} full {IMAGE}- {KIND}-", f"{IMAGE} and {KIND}", "set-toolkit-image", "admin"),
    ("plain", f'patch {PLAN} plain --type=merge -p {{"spec":{{"force":true}}}}', "spec.force", "waive", "editor"),
]


async def test_kubectl_prints_what_is_missing(guarded: Cluster) -> None:
    for name, command, what, verb, role in REFUSALS:
        assert await guarded.fail("--as=operator", *command.split()) == (
            f"Error from server (Forbidden): {PLAN} \"{name}\" is forbidden: ValidatingAdmissionPolicy '{POLICY}' with "
            f"binding '{POLICY}' denied request: setting, changing or removing {what} needs the verb {verb} on {PLAN}, "
            f"which ClusterRole harvester-upgrade-manager-{role} has; check it with: kubectl auth can-i {verb} {PLAN}\n"
        )
        for user_, printed in (("operator", "no\n"), ("admin", "yes\n")):
            assert (await guarded.kubectl(f"--as={user_}", "auth", "can-i", verb, PLAN)).out == printed


ALICE = "alice of accounting"
NAMES = [ALICE, "system:serviceaccount:flux-system:kustomize-controller", "u" * 2000]


@pytest.mark.rule("security: no user is recorded under another name")
@pytest.mark.parametrize("name", NAMES, ids=lambda name: name[:12])
async def test_names_are_those_of_the_user(guarded: Cluster, name: str) -> None:
    await bind(guarded, name, name="named")
    wire = acting_as(guarded, name)
    own, last = {ANNOTATION_CREATED_BY: name}, {ANNOTATION_LAST_CHANGED_BY: f"{name} {HASH}"}
    created = await wire.post(PLANS, plan("named", own | last))
    assert created.status == 201, created.body
    forged = {
        "another creator": ("", plan("new", {ANNOTATION_CREATED_BY: "bob"})),
        "the name and more": ("", plan("new", {ANNOTATION_CREATED_BY: f"{name} "})),
        "an empty creator": ("", plan("new", {ANNOTATION_CREATED_BY: ""})),
        "another user": ("", plan("new", {ANNOTATION_LAST_CHANGED_BY: f"bob {HASH}"})),
        "a longer name": ("", plan("new", {ANNOTATION_LAST_CHANGED_BY: f"{name} bob {HASH}"})),
        "a part of the name": ("", plan("new", {ANNOTATION_LAST_CHANGED_BY: f"{name[:-1]} {HASH}"})),
        "no hash": ("", plan("new", {ANNOTATION_LAST_CHANGED_BY: f"{name} "})),
        "a short hash": ("", plan("new", {ANNOTATION_LAST_CHANGED_BY: f"{name} {HASH[1:]}"})),
        "a creator later": ("plain", annotated(created_by=name)),
        "an own creator": ("named", annotated(created_by="bob")),
    }
    statuses = {title: (await attempt(wire, *action)).status for title, action in forged.items()}
    assert statuses == dict.fromkeys(forged, 422)
    allowed = {
        "nothing": ("named", annotated(a="b")),
        "no names": ("named", annotated(created_by=None, last_changed_by=None)),
        "another hash": ("named", annotated(last_changed_by=f"{name} {HASH[::-1]}")),
    }
    assert [(await attempt(wire, *action)).status for action in allowed.values()] == [200] * len(allowed)
    # Of others, also by an administrator.
    assert (await attempt(guarded.wire, "named", annotated(last_changed_by=f"{name} {HASH[1:]}1"))).status == 422
    assert (await attempt(guarded.wire, "named", annotated(last_changed_by=f"{name} {HASH}"))).status == 200


#: Nearly all that Kubernetes allows.
LONG = "x" * 250_000
# As long as one request allows.
NODES = [f"node-{index:04}.{'a' * 138}" for index in range(MAX_NODES)]


@pytest.mark.parametrize("count", [1000, MAX_NODES])
async def test_largest_plan_stays_within_the_cost_limit(guarded: Cluster, count: int) -> None:
    await bind(guarded, "u" * 2000, name="named")
    wire = acting_as(guarded, "u" * 2000)
    large = plan("large", {"a/b": LONG}, nodeUpgradeOption={"pauseNodes": NODES[:count]})
    created = await wire.post(PLANS, large)
    assert created.status == 201, created.body["message"][:500]
    for body, status in (
        ({"metadata": {"annotations": {"a/b": LONG[1:]}, "finalizers": [FINALIZER]}}, 200),
        ({"spec": {"nodeUpgradeOption": {"pauseNodes": NODES[: count - 1]}}}, 200),
        ({"metadata": {"annotations": {"a/b": None, ANNOTATION_TOOLKIT_IMAGE: LONG}}}, 403),
        ({"metadata": {"annotations": {"a/b": None, ANNOTATION_SKIP_WEBHOOK: LONG}}}, 403),
        ({"metadata": {"annotations": {"a/b": None, ANNOTATION_CREATED_BY: LONG}}}, 422),
        ({"metadata": {"annotations": {"a/b": None, ANNOTATION_LAST_CHANGED_BY: f"{'u' * 2000} {LONG[:9999]}"}}}, 422),
    ):
        answer = await attempt(wire, "large", body)
        assert (answer.status, "cost" in str(answer.body.get("message"))) == (status, False), answer.body["message"]
    admin = acting_as(guarded, "admin")
    chosen = {"a/b": None, ANNOTATION_TOOLKIT_IMAGE: LONG[:100_000], **dict.fromkeys(WAIVER_ANNOTATIONS, LONG[:10_000])}
    answer = await attempt(admin, "large", {"metadata": {"annotations": chosen}, "spec": {"force": True}})
    assert answer.status == 200, answer.body["message"][:500]


@pytest.mark.rule("security: the API server's audit log shows who chose which toolkit image")
async def test_audit_log_shows_who_chose_the_image(guarded: Cluster, controlled_plane: ControlPlane) -> None:
    log = AuditLog(controlled_plane)
    created = plan("chosen", {ANNOTATION_TOOLKIT_IMAGE: "mirror/a@sha256:1"})
    assert (await acting_as(guarded, "editor").post(PLANS, created)).status == 403
    assert (await acting_as(guarded, "admin").post(PLANS, created)).status == 201
    await acting_as(guarded, "admin").patch(f"{PLANS}/chosen", annotated(upgrade_toolkit_kind="own"))
    await acting_as(guarded, "operator").patch(f"{PLANS}/chosen", PAUSE)
    await acting_as(guarded, "admin").patch(f"{PLANS}/chosen", annotated(upgrade_toolkit_image=None))
    await acting_as(guarded, "admin").delete(f"{PLANS}/chosen")
    await log.find(lambda event: event["verb"] == "delete" and event["objectRef"]["resource"] == "upgradeplans")
    found = [
        (event["verb"], user(event), event["responseStatus"]["code"], annotations_of(event, POLICY))
        for event in log.events()
        if event["objectRef"]["resource"] == "upgradeplans" and user(event) in USERS
    ]
    image = {"toolkit-image": "mirror/a@sha256:1", "toolkit-kind": "default"}
    assert found == [
        ("create", "editor", 403, image | {"toolkit-image-set-by": "editor"}),
        ("create", "admin", 201, image | {"toolkit-image-set-by": "admin"}),
        ("patch", "admin", 200, image | {"toolkit-kind": "own", "toolkit-image-set-by": "admin"}),
        ("patch", "operator", 200, {}),
        ("patch", "admin", 200, {"toolkit-image": "default", "toolkit-kind": "own", "toolkit-image-set-by": "admin"}),
        ("delete", "admin", 200, {}),
    ]


async def test_audit_log_shows_privileged_workloads(guarded: Cluster, controlled_plane: ControlPlane) -> None:
    log = AuditLog(controlled_plane)
    await guarded.wire.post("/api/v1/namespaces", {"metadata": {"name": "harvester-system"}})
    container = {"name": "c", "image": "mirror/toolkit:v1", "securityContext": {"privileged": True}}
    job = {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    path = "/apis/batch/v1/namespaces/harvester-system/jobs"
    assert (await guarded.wire.post(path, {"metadata": {"name": "one"}, "spec": job})).status == 201
    event = await log.find(lambda event: event["objectRef"].get("name") == "one" and event["verb"] == "create")
    assert event["requestObject"]["spec"]["template"]["spec"]["containers"][0]["image"] == "mirror/toolkit:v1"
    assert user(event) == "admin"


async def test_other_account_needs_the_verbs(guarded: Cluster) -> None:
    """Permission to write plans is not enough: neither for a stranger, nor for the manager."""
    manager = "system:serviceaccount:harvester-system:harvester-upgrade-manager"
    await bind(guarded, manager, name="manager")
    for name in (STRANGER, manager):
        for change in (annotated(upgrade_toolkit_image="a/b"), annotated(skip_webhook="true")):
            assert (await attempt(acting_as(guarded, name), "plain", change)).status == 403
        finalizer = {"metadata": {"finalizers": [FINALIZER]}}
        for where, change in (("plain", annotated(descheduler_was_enabled="true")), ("full", finalizer)):
            assert (await attempt(acting_as(guarded, name), where, change)).status == 200
