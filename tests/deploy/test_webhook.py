"""The configurations of both webhooks: what is sent to the webhook, and what passes without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.apiserver.expression import evaluate
from upgrade_manager.api.attribution import ANNOTATIONS, FIELDS
from upgrade_manager.api.keys import (
    ANNOTATION_ALLOW_DELETION,
    ANNOTATION_CONTINUE,
    ANNOTATION_SKIP_WEBHOOK,
    ANNOTATION_TOOLKIT_IMAGE,
    ANNOTATION_TOOLKIT_KIND,
    GROUP,
)
from upgrade_manager.api.spec import MAX_NODES
from upgrade_manager.kube.resources import UPGRADE_PLANS
from webhook import builtin, mutation
from webhook.body import BODY_TIMEOUT
from webhook.certificates.rotation import CONFIGURATION, SERVICE
from webhook.runner import DEADLINE
from webhook.server import PATH

FILE = Path(__file__).parents[2] / "deploy/webhook/webhook.yaml"
SERVICE_MANIFEST, MANIFEST = yaml.safe_load_all(FILE.read_text())
(WEBHOOK,) = MANIFEST["webhooks"]

UPGRADES = yaml.safe_load(FILE.with_name("upgrades.yaml").read_text())
MUTATING = yaml.safe_load(FILE.with_name("mutating.yaml").read_text())
(MUTATING_WEBHOOK,) = MUTATING["webhooks"]
SERVICE_ACCOUNT = yaml.safe_load((FILE.parents[1] / "rbac/service-account.yaml").read_text())

NOT_MANAGER, NOT_SKIPPED, UPDATED, IN_PROGRESS = (condition["name"] for condition in WEBHOOK["matchConditions"])
_, STEERING_CHANGED = (condition["name"] for condition in MUTATING_WEBHOOK["matchConditions"])
IMAGE, KIND = ANNOTATION_TOOLKIT_IMAGE, ANNOTATION_TOOLKIT_KIND
FINALIZER: dict[str, Any] = {"finalizers": ["x"]}
DELETED: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def test_configuration_calls_the_service_of_the_certificate() -> None:
    assert MANIFEST["metadata"] == {"name": CONFIGURATION, "labels": SERVICE_MANIFEST["metadata"]["labels"]}
    (port,) = SERVICE_MANIFEST["spec"]["ports"]
    assert SERVICE_MANIFEST["metadata"]["name"] == SERVICE
    assert WEBHOOK["clientConfig"] == {
        "service": {"name": SERVICE, "namespace": "harvester-system", "port": port["port"], "path": PATH}
    }


def test_upgrades_of_harvester_pass_a_webhook_that_is_down() -> None:
    (one,) = UPGRADES["webhooks"]
    path = one["clientConfig"]["service"]["path"]
    assert (UPGRADES["metadata"]["name"], path) == (f"{CONFIGURATION}-upgrades", builtin.PATH)
    assert one["clientConfig"] == {"service": WEBHOOK["clientConfig"]["service"] | {"path": path}}
    assert one["rules"] == [
        {
            "apiGroups": ["harvesterhci.io"],
            "apiVersions": ["v1beta1"],
            "resources": ["upgrades"],
            "operations": ["CREATE"],
            "scope": "Namespaced",
        }
    ]
    assert (one["failurePolicy"], one["sideEffects"], one["matchPolicy"]) == ("Ignore", "None", "Equivalent")
    assert one["timeoutSeconds"] > builtin.DEADLINE


def test_failure_denies_after_the_checks_have_ended() -> None:
    assert (WEBHOOK["failurePolicy"], WEBHOOK["matchPolicy"], WEBHOOK["sideEffects"]) == ("Fail", "Equivalent", "None")
    assert BODY_TIMEOUT + DEADLINE <= WEBHOOK["timeoutSeconds"] == 10
    assert WEBHOOK["admissionReviewVersions"] == ["v1"]


def test_rules_match_plans_without_their_status() -> None:
    (rule,) = WEBHOOK["rules"]
    assert rule == {
        "apiGroups": [GROUP],
        "apiVersions": [UPGRADE_PLANS.version],
        "resources": [UPGRADE_PLANS.plural],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "scope": "Cluster",
    }


def plan(*pause: str, status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    spec = {"version": "v1.8.0"} | ({"nodeUpgradeOption": {"pauseNodes": [*pause]}} if pause else {})
    return {"metadata": {"name": "demo", **metadata}, "spec": spec, **({"status": status} if status else {})}


def stuck(policy: str) -> dict[str, Any]:
    return {**plan(), "spec": {"nodeUpgradeOption": {"onMigrationFailure": policy}}}


def nodes(count: int) -> list[str]:
    return [f"node-{index}" for index in range(count)]


def progressing(status: str) -> dict[str, Any]:
    conditions = [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": status}]
    return plan(status={"conditions": conditions})


LONGEST = plan(*nodes(MAX_NODES))
CHOSEN, OTHER_IMAGE = ({"annotations": {IMAGE: image}} for image in ("a", "b"))


def skipping(value: str) -> dict[str, Any]:
    return plan(annotations={ANNOTATION_SKIP_WEBHOOK: value})


def option(**fields: Any) -> dict[str, Any]:
    return {**plan(), "spec": {"nodeUpgradeOption": fields}}


@pytest.mark.parametrize(
    ("operation", "new", "old", "failed"),
    [
        pytest.param("CREATE", plan(), None, "", id="a new plan"),
        pytest.param("CREATE", plan(annotations={"a": "b"}), None, "", id="an unknown annotation"),
        pytest.param("CREATE", skipping("false"), None, "", id="not skipped"),
        pytest.param("CREATE", skipping("true"), None, NOT_SKIPPED, id="skipped"),
        pytest.param("UPDATE", stuck("Wait"), plan(), "", id="Wait"),
        pytest.param("UPDATE", stuck("Wait"), stuck("Stop"), "", id="Wait for Stop"),
        pytest.param("UPDATE", stuck("Wait"), stuck("Wait"), UPDATED, id="the same Wait"),
        pytest.param("UPDATE", stuck("Stop"), stuck("Wait"), UPDATED, id="Stop, which is always allowed"),
        pytest.param("UPDATE", plan("a"), plan(), "", id="a first pause"),
        pytest.param("UPDATE", plan("a", "b"), plan("a"), "", id="another pause"),
        pytest.param("UPDATE", plan("a"), plan("a"), UPDATED, id="the same pauses"),
        pytest.param("UPDATE", plan("a", "c"), plan("a", "b", "c"), UPDATED, id="a pause less"),
        pytest.param("UPDATE", plan("c", "a"), plan("a", "b", "c"), UPDATED, id="a pause less in another order"),
        pytest.param("UPDATE", plan("b"), plan("a"), "", id="a pause for another"),
        pytest.param("UPDATE", plan("a", "c"), plan("a", "b"), "", id="a pause less, and another"),
        pytest.param("UPDATE", plan(), plan("a"), UPDATED, id="no pauses left"),
        pytest.param("UPDATE", option(pauseAfter=1), plan(), "", id="a canary"),
        pytest.param("UPDATE", plan(), option(pauseAfter=1), "", id="no canary any more"),
        pytest.param("UPDATE", option(pauseAfter=1), option(pauseAfter=1), UPDATED, id="the same canary"),
        pytest.param(
            "UPDATE", plan(annotations={ANNOTATION_CONTINUE: "a:Drain"}), plan(), "", id="a node that may go on"
        ),
        pytest.param("UPDATE", option(pauseBefore=["Drain"]), plan(), UPDATED, id="steps that hold"),
        pytest.param("UPDATE", {**plan(), "spec": {"paused": True}}, plan(), UPDATED, id="a pause of the plan"),
        pytest.param("UPDATE", plan(**FINALIZER), plan(), UPDATED, id="a new finalizer"),
        pytest.param("UPDATE", plan("a", **DELETED), plan("a", **DELETED, **FINALIZER), UPDATED, id="deleted"),
        pytest.param("UPDATE", plan("b", **DELETED), plan("a", **DELETED), UPDATED, id="a deleted plan changes"),
        pytest.param("UPDATE", plan(**CHOSEN), plan(), "", id="a toolkit image"),
        pytest.param("UPDATE", plan(**CHOSEN), plan(**OTHER_IMAGE), "", id="another image"),
        pytest.param("UPDATE", plan(), plan(annotations={KIND: "own"}), "", id="no toolkit kind any more"),
        pytest.param("UPDATE", plan(**CHOSEN, **DELETED), plan(**DELETED), UPDATED, id="too late"),
        pytest.param("UPDATE", plan(annotations={"a": "b"}), plan(), UPDATED, id="another annotation"),
        pytest.param("DELETE", None, plan(), IN_PROGRESS, id="a plan without status"),
        pytest.param("DELETE", None, plan(status={"currentPhase": "x"}), IN_PROGRESS, id="without conditions"),
        pytest.param("DELETE", None, progressing("False"), IN_PROGRESS, id="an ended plan"),
        pytest.param("DELETE", None, progressing("True"), "", id="a plan in progress"),
        pytest.param("UPDATE", plan(*nodes(500)), plan(*nodes(501)), "", id="a pause less in a long list"),
        pytest.param("UPDATE", plan(*nodes(499)), plan(*nodes(500)), UPDATED, id="a pause less of 500"),
        pytest.param("UPDATE", LONGEST, LONGEST, UPDATED, id="the longest list"),
        pytest.param("UPDATE", plan(*nodes(50)), LONGEST, UPDATED, id="most pauses less"),
        pytest.param("UPDATE", LONGEST, plan(*nodes(MAX_NODES - 1)), "", id="a pause more in the longest list"),
    ],
)
def test_conditions_select_what_the_webhook_decides(
    operation: str, new: dict[str, Any] | None, old: dict[str, Any] | None, failed: str
) -> None:
    assert unmet(WEBHOOK, operation, new, old) == ([failed] if failed else [])


def unmet(webhook: dict[str, Any], operation: str, new: Any, old: Any, *, user: str = "alice") -> list[str]:
    """Return the conditions under which the API server does not call the webhook."""
    request = {"operation": operation, "userInfo": {"username": user}}
    variables = {"request": request, "object": new, "oldObject": old}
    results = {one["name"]: evaluate(one["expression"], variables) for one in webhook["matchConditions"]}
    return [name for name, value in results.items() if value is not True]


@pytest.mark.parametrize("webhook", [WEBHOOK, MUTATING_WEBHOOK], ids=["validating", "mutating"])
def test_requests_of_the_manager_are_not_reviewed(webhook: dict[str, Any]) -> None:
    namespace, name = SERVICE_ACCOUNT["metadata"]["namespace"], SERVICE_ACCOUNT["metadata"]["name"]
    user = f"system:serviceaccount:{namespace}:{name}"
    assert unmet(webhook, "CREATE", plan("a"), None, user=user) == [NOT_MANAGER]
    assert unmet(webhook, "CREATE", plan("a"), None, user=f"{user}-2") == []


def test_both_webhooks_are_served_alike() -> None:
    assert MUTATING["metadata"] == MANIFEST["metadata"]
    assert MUTATING_WEBHOOK["clientConfig"] == {"service": WEBHOOK["clientConfig"]["service"] | {"path": mutation.PATH}}
    (rule,), (mutating_rule,) = WEBHOOK["rules"], MUTATING_WEBHOOK["rules"]
    assert mutating_rule == rule


def test_attribution_blocks_no_request() -> None:
    policies = [MUTATING_WEBHOOK[field] for field in ("failurePolicy", "reinvocationPolicy", "sideEffects")]
    assert policies == ["Ignore", "Never", "None"]
    assert MUTATING_WEBHOOK["timeoutSeconds"] <= WEBHOOK["timeoutSeconds"]


def annotated(key: str, value: str = "true") -> dict[str, Any]:
    return plan(annotations={key: value})


#: Changes of each recorded field, as (new, old).
STEERING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "spec.force": ({**plan(), "spec": {"force": True}}, plan()),
    "spec.nodeUpgradeOption.pauseAfter": (option(pauseAfter=2), option(pauseAfter=1)),
    "spec.nodeUpgradeOption.pauseBefore": (option(pauseBefore=["Drain"]), plan()),
    "spec.paused": ({**plan(), "spec": {"paused": True}}, plan()),
    "spec.nodeUpgradeOption.pauseNodes": (plan("a", "b"), plan("a")),
    "spec.nodeUpgradeOption.onMigrationFailure": (stuck("Wait"), stuck("Stop")),
    "spec.attempt": ({**plan(), "spec": {"attempt": 2}}, plan()),
}


@pytest.mark.parametrize(
    ("new", "old"),
    [
        *(pytest.param(*STEERING[name], id=name) for name in FIELDS),
        *(pytest.param(annotated(key), plan(), id=key.rpartition("/")[2]) for key in ANNOTATIONS),
        *(pytest.param(annotated(key, "a"), annotated(key, "b"), id=f"other {key[27:]}") for key in ANNOTATIONS),
        pytest.param(plan("a"), plan(), id="a first pause"),
        pytest.param(plan(*nodes(MAX_NODES)), plan(*nodes(MAX_NODES - 1)), id="the longest list"),
    ],
)
def test_changes_that_are_recorded_reach_the_mutating_webhook(new: dict[str, Any], old: dict[str, Any]) -> None:
    assert unmet(MUTATING_WEBHOOK, "UPDATE", new, old) == []
    assert unmet(MUTATING_WEBHOOK, "UPDATE", old, new) == []
    assert unmet(MUTATING_WEBHOOK, "UPDATE", new, new) == [STEERING_CHANGED]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        pytest.param(plan(**FINALIZER), plan(), id="a finalizer"),
        pytest.param(annotated("a"), plan(), id="another annotation"),
        pytest.param(annotated(ANNOTATION_TOOLKIT_IMAGE), plan(), id="the image, which the policy records"),
        pytest.param({**plan(), "spec": {"force": False}}, plan(), id="a default that is written out"),
        pytest.param({**plan(), "spec": {"restoreVM": True}}, plan(), id="another field"),
        pytest.param({**plan(), "spec": {"nodeUpgradeOption": {"pauseNodes": []}}}, plan(), id="an empty list"),
    ],
)
def test_other_changes_do_not_reach_the_mutating_webhook(new: dict[str, Any], old: dict[str, Any]) -> None:
    assert unmet(MUTATING_WEBHOOK, "UPDATE", new, old) == [STEERING_CHANGED]
    assert unmet(MUTATING_WEBHOOK, "CREATE", new, None) == []


def test_only_the_webhook_reads_the_consent_to_a_deletion() -> None:
    assert ANNOTATION_ALLOW_DELETION not in FILE.read_text()
