from __future__ import annotations

import copy
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cel
import pytest
import yaml

from upgrade_manager.api import crd
from upgrade_manager.api.condition_model import Condition
from upgrade_manager.api.conditions import RECONCILING
from upgrade_manager.api.crd import crd_manifest
from upgrade_manager.api.display import display_of, is_unseen, readiness_of
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import FAILED, PHASE_VALUES, SUCCEEDED

STORED = Path(__file__).parents[2] / "deploy" / "crds" / "management.harvesterhci.io_upgradeplans.yaml"
PRESERVE = "x-kubernetes-preserve-unknown-fields"

#: Keywords of a structural schema that kubectl explain understands.
ALLOWED = {
    *("type", "format", "description", "required", "properties", "additionalProperties", "items", "enum", "pattern"),
    *("minimum", "minLength", "maxLength", "maxItems", PRESERVE),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-validations", "default"),
}


def version() -> dict[str, Any]:
    found: dict[str, Any] = crd_manifest()["spec"]["versions"][0]
    return found


def nodes(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema node with its path; lists as `[]` and maps as `{}`."""
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in node:
        yield from nodes(node["items"], f"{path}[]")
    if "additionalProperties" in node:
        yield from nodes(node["additionalProperties"], f"{path}{{}}")


NODES = dict(nodes(version()["schema"]["openAPIV3Schema"]))


@pytest.mark.rule("api: the installed CRD manifest is generated from the models")
def test_manifest_in_deploy_is_what_the_module_prints(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(crd.__file__), run_name="__main__")
    assert STORED.read_text() == capsys.readouterr().out, f"run: python -m upgrade_manager.api.crd > {STORED.name}"
    assert yaml.safe_load(STORED.read_text()) == crd_manifest()


@pytest.mark.rule(
    "api: group and version are management.harvesterhci.io/v1beta1",
    "api: the kind is UpgradePlan, with the names upgradeplans, up and ups",
    "api: UpgradePlan is cluster-scoped",
    "api: status is a subresource",
)
def test_names_and_scope() -> None:
    spec = crd_manifest()["spec"]
    assert crd_manifest()["metadata"]["name"] == "upgradeplans.management.harvesterhci.io"
    assert (spec["group"], spec["scope"]) == ("management.harvesterhci.io", "Cluster")
    assert spec["names"]["plural"] == "upgradeplans"
    assert spec["names"]["shortNames"] == ["up", "ups"]
    assert version()["name"] == "v1beta1"
    assert version()["subresources"] == {"status": {}}


@pytest.mark.rule(
    "api: kubectl get shows VERSION, PHASE, STATUS, NODES and AGE",
    "api: kubectl get -o wide adds the conditions, IMAGE, PREVIOUS, TARGET, MESSAGE and NEXT",
)
def test_printer_columns() -> None:
    columns = version()["additionalPrinterColumns"]
    narrow = [column["name"].upper() for column in columns if not column.get("priority")]
    wide = [column["name"].upper() for column in columns if column.get("priority") == 1]
    assert narrow == ["VERSION", "PHASE", "STATUS", "NODES", "AGE"]
    assert wide == ["AVAILABLE", "PROGRESSING", "DEGRADED", "IMAGE", "PREVIOUS", "TARGET", "MESSAGE", "NEXT"]


@pytest.mark.rule("api: the schema has a status for a plan that no manager has seen")
def test_default_status_is_that_of_a_plan_without_a_manager() -> None:
    default = NODES[".status"]["default"]
    assert is_unseen(default)
    assert default["display"] == display_of({}, is_deleting=False)
    reconciling = readiness_of({})[RECONCILING]
    assert reconciling is not None
    (found,) = default["conditions"]
    assert Condition.read(found).model_copy(update={"last_transition_time": ""}) == reconciling


@pytest.mark.parametrize("status", [{}, {"conditions": None}, {"conditions": ["x"]}, {"currentPhase": "Failed"}])
def test_other_statuses_are_those_of_a_manager(status: dict[str, Any]) -> None:
    assert not is_unseen(status)


def test_metadata_has_no_schema() -> None:
    assert NODES[".metadata"] == {"type": "object"}


@pytest.mark.rule("api: every field has a description", "api: the schema is structural")
@pytest.mark.parametrize("path", [path for path in NODES if path != ".metadata"], ids=str)
def test_schema_is_structural_and_describes_every_field(path: str) -> None:
    node = NODES[path]
    assert node["description"][0].isupper() or node["description"].startswith("SHA")
    assert node["description"].endswith(".")
    assert set(node) <= ALLOWED
    assert isinstance(node.get("type"), str) or node[PRESERVE], "any value, or one type"
    assert not ("properties" in node and "additionalProperties" in node)
    assert set(node.get("required", ())) <= set(node.get("properties", ()))
    assert "default" not in node or path == ".status"
    if path and "properties" in node:
        assert (PRESERVE in node) == path.startswith(".status"), "unknown fields are preserved in the status only"


LIMITS: dict[str, dict[str, Any]] = {
    ".spec.version": {"minLength": 1},
    ".spec.image": {"minLength": 1},
    ".spec.upgrade": {"minLength": 1},
    ".spec.imagePreloadOption.concurrency": {"type": "integer", "format": "int32"},
    ".spec.nodeUpgradeOption.pauseNodes": {"x-kubernetes-list-type": "set"},
    ".spec.nodeUpgradeOption.pauseNodes[]": {"type": "string", "minLength": 1},
    ".status.conditions": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ".status.conditions[]": {"required": ["type", "status", "lastTransitionTime", "reason", "message"]},
    ".status.phaseTransitionTimestamps": {"x-kubernetes-list-map-keys": ["phase"]},
    ".status.phaseTransitionTimestamps[].phaseTransitionTimestamp": {"type": "string", "format": "date-time"},
    ".status.provisionGeneration": {"type": "integer", "format": "int64"},
    ".status.nodeUpgradeStatuses{}.state": {"type": "string"},
    "": {"required": ["spec"]},
}


@pytest.mark.rule(
    "api: version, image and upgrade have at least one character",
    "api: concurrency is an integer",
    "api: pauseNodes is a set",
    "api: pauseNodes contains no empty string",
    "api: conditions are a map by type of metav1.Condition",
    "api: each phase value is recorded once",
    "api: an entry has a phase and the time at which it was reached",
)
@pytest.mark.parametrize(("path", "expected"), LIMITS.items(), ids=LIMITS)
def test_field_limits(path: str, expected: dict[str, Any]) -> None:
    assert {key: NODES[path].get(key) for key in expected} == expected


@pytest.mark.rule(
    "api: the spec has seven fields",
    "api: the status has fifteen fields",
    "api: releaseMetadata has the release's members, of seven known ones",
)
@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (".spec", ["version image upgrade force restoreVM attempt paused", "imagePreloadOption nodeUpgradeOption"]),
        (".status", ["advised attempt attempts blockers cleanupPending conditions currentPhase",
                     "phaseTransitionTimestamps isoImageID",
                     "estimatedCompletion ledger nextSteps pastBlockers",
                     "nodeUpgradeStatuses originals previousVersion provisionGeneration releaseMetadata singleNode",
                     "sameKubernetes staleHooks version", "createdBy toolkitImage checksums survey display",
                     "observedGeneration holds pausedBy pausedSince pauses queuedSince"]),
            (".status.survey", ["plan nodes"]),
        (".status.checksums", ["isoChecked checked message files"]),
            (".status.toolkitImage", ["repository tag digest kind guessed annotatedImage annotatedKind"]),
        (".status.releaseMetadata", ["harvester harvesterChart os kubernetes rancher monitoringChart",
                                     "minUpgradableVersion"]),
    ],
)  # fmt: skip
def test_fields(path: str, fields: list[str]) -> None:
    assert set(NODES[path]["properties"]) == set(" ".join(fields).split())


def test_descriptions_list_all_values_without_an_enum() -> None:
    phase, state = NODES[".status.currentPhase"], NODES[".status.nodeUpgradeStatuses{}.state"]
    assert all(value in phase["description"] for value in (*PHASE_VALUES, SUCCEEDED, FAILED))
    assert all(value in state["description"] for value in NodeState)
    assert "enum" not in phase
    assert "enum" not in state


def broken(new: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    """Return the fields whose rules fail; rules on oldSelf apply to updates only, as in the API server."""
    values = {"self": new} if old is None else {"self": new, "oldSelf": old}
    rules = [
        rule for rule in NODES[".spec"]["x-kubernetes-validations"] if old is not None or "oldSelf" not in rule["rule"]
    ]
    return [rule["fieldPath"] for rule in rules if not cel.evaluate(rule["rule"], values)]


@pytest.mark.rule("api: names and tags in the spec follow Kubernetes' patterns")
@pytest.mark.parametrize(
    ("path", "valid", "invalid"),
    [
        (".spec.version", ["v1.8.0", "v1.8.0-rc1", "a"], ["V1 8", "v1.8.0+1", "../v1", "v1.", "a/b", "v1\n"]),
        (".spec.image", ["iso", "iso.v1", "images/iso"], ["a/b/c", "../x", "/iso", "a.b/iso", "images/", "Iso"]),
        (".spec.upgrade", ["v1.8.0", "_x", "Fix-2_b"], ["a b", ".x", "-x", "v1+2", "a/b", "a:b"]),
        (".spec.nodeUpgradeOption.pauseNodes[]", ["node-0", "a.example.org"], ["Node 0", "N1", " n1", "n1.", "-n"]),
    ],
)
def test_names_and_tags_follow_patterns(path: str, valid: list[str], invalid: list[str]) -> None:
    pattern = re.compile(NODES[path]["pattern"].removesuffix("$"), re.ASCII)
    assert [text for text in valid if not pattern.fullmatch(text)] == []
    assert [text for text in invalid if pattern.fullmatch(text)] == []


@pytest.mark.rule("api: version or image is required")
@pytest.mark.parametrize(
    ("spec", "blamed"),
    [
        pytest.param({"version": "v1.8.0"}, [], id="a version"),
        pytest.param({"image": "iso"}, [], id="an image"),
        pytest.param({"version": "v1.8.0", "image": "iso"}, [], id="both"),
        pytest.param({"force": True}, [".version"], id="neither"),
        pytest.param({}, [".version"], id="nothing"),
    ],
)
def test_version_or_image_is_required(spec: dict[str, Any], blamed: list[str]) -> None:
    assert broken(spec) == blamed


FULL = {"version": "v1.8.0", "image": "iso", "upgrade": "v1.8.1"}


@pytest.mark.rule("api: version, image and upgrade are immutable: they cannot be changed, added or removed")
@pytest.mark.parametrize("field", ["version", "image", "upgrade"])
def test_immutable_fields(field: str) -> None:
    without = {key: value for key, value in FULL.items() if key != field}
    assert broken({**FULL, field: "other"}, FULL) == [f".{field}"]
    assert broken(FULL, without) == [f".{field}"]
    assert broken(without, FULL) == [f".{field}"]
    assert broken(without, without) == []


@pytest.mark.rule("api: pauseNodes may change while the plan runs", "api: the other spec fields are mutable")
@pytest.mark.parametrize(
    "change",
    [
        {"force": True},
        {"restoreVM": True},
        {"imagePreloadOption": {"concurrency": 2}},
        {"nodeUpgradeOption": {"pauseNodes": ["node1"]}},
    ],
    ids=lambda change: str(next(iter(change))),
)
def test_mutable_fields(change: dict[str, Any]) -> None:
    assert broken({**FULL, **change}, FULL) == []
    assert broken(FULL, {**FULL, **change}) == []


@pytest.mark.rule("api: CEL rules of the schema enforce this without a webhook")
def test_rules_apply_to_bounded_strings_only() -> None:
    for rule in NODES[".spec"]["x-kubernetes-validations"]:
        field = NODES[".spec" + rule["fieldPath"]]
        assert field["type"] == "string"
        assert field["maxLength"] <= 317
        assert len(rule["message"]) < 250


def test_manifest_is_a_copy() -> None:
    before = copy.deepcopy(crd_manifest())
    crd_manifest()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].clear()
    assert crd_manifest() == before
