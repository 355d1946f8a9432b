"""The chart, as Helm renders it, against the kustomizations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.helm import CHART, LABELS, MANAGER, WEBHOOK, Helm, deployment, pod, without_release
from tests.support.programs.kustomize import COMPONENTS, DEFAULT, rendered, title, with_components
from upgrade_manager import __version__
from upgrade_manager.cli.options import RunOptions, parse_options

pytestmark = pytest.mark.assets

ALL = (
    "webhook.certificates=cert-manager",
    "serviceMonitor.enabled=true",
    "prometheusRule.enabled=true",
    "dashboard.enabled=true",
)
POLICIES = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}


def by_title(manifests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = {title(manifest): manifest for manifest in manifests}
    assert len(found) == len(manifests)
    return found


def test_defaults_render_the_objects_of_the_default(helm: Helm) -> None:
    manifests = helm.rendered()
    assert by_title([*map(without_release, manifests)]) == by_title(rendered(DEFAULT))
    assert all({*LABELS} <= one["metadata"]["labels"].keys() for one in manifests)


def test_switches_render_the_objects_of_the_components(helm: Helm, tmp_path: Path) -> None:
    manifests = [*map(without_release, helm.rendered(*ALL))]
    assert by_title(manifests) == by_title(rendered(with_components(tmp_path, COMPONENTS)))


def test_chart_passes_helm_lint(helm: Helm) -> None:
    ended = helm.run("lint", "--strict", str(CHART))
    assert (ended.returncode, ended.stderr) == (0, "")


NO_WEBHOOK, CERT_MANAGER = "webhook.enabled=false", "webhook.certificates=cert-manager"
ISSUER = [f"webhook.certManager.issuerRef.{field}" for field in ("name=a", "kind=ClusterIssuer")]
OF_THE_WEBHOOK = {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "Secret"}
NONE: set[str] = set()


@pytest.mark.parametrize(
    ("settings", "missing", "added"),
    [
        pytest.param([NO_WEBHOOK], OF_THE_WEBHOOK, NONE, id="no webhook"),
        pytest.param([NO_WEBHOOK, CERT_MANAGER], OF_THE_WEBHOOK, NONE, id="no webhook and no Certificate"),
        pytest.param([CERT_MANAGER, *ISSUER], {"Secret"}, {"Certificate"}, id="another issuer"),
        pytest.param(["admissionPolicies.enabled=false"], POLICIES, NONE, id="no policies"),
        pytest.param(["podDisruptionBudget.enabled=false"], {"PodDisruptionBudget"}, NONE, id="no budget"),
        pytest.param(["crds.install=false"], {"CustomResourceDefinition"}, NONE, id="no CRD"),
        pytest.param(["flowSchema.enabled=false"], {"FlowSchema"}, NONE, id="no FlowSchema"),
        pytest.param(["networkPolicy.enabled=false"], {"NetworkPolicy"}, NONE, id="no network policy"),
        pytest.param(["serviceMonitor.enabled=true"], NONE, {"ServiceMonitor"}, id="ServiceMonitor"),
        pytest.param(["prometheusRule.enabled=true"], NONE, {"PrometheusRule"}, id="alerts"),
        pytest.param(["dashboard.enabled=true"], NONE, {"ConfigMap"}, id="dashboard"),
    ],
)
def test_switch_changes_the_kinds(helm: Helm, settings: list[str], missing: set[str], added: set[str]) -> None:
    default = {manifest["kind"] for manifest in rendered(DEFAULT)}
    assert {manifest["kind"] for manifest in helm.rendered(*settings)} == (default - missing) | added


SHARED = [
    *("image.repository=registry.example/a", "image.tag=v9", "image.pullPolicy=Always"),
    *('image.pullSecrets=[{"name": "pull"}]', "priorityClassName=", "hostUsers=false"),
    *('tolerations=[{"key": "a", "operator": "Exists"}]', "affinity.nodeAffinity.a=b", "nodeSelector.a=b"),
    *("log.level=debug", "log.format=json"),
]
#: Options that each Deployment has alone.
MANAGERS = ['extraArgs=["--repo-url=http://x"]', 'env=[{"name": "A", "value": "b"}]', "resources.limits.memory=1Gi"]
WEBHOOKS = [
    *("webhook.replicas=3", "webhook.resources.limits.memory=2Gi"),
    *('webhook.extraArgs=["--context=a"]', 'webhook.env=[{"name": "C", "value": "d"}]'),
]


def test_values_reach_both_deployments(helm: Helm) -> None:
    manifests = helm.rendered(*SHARED, *MANAGERS, *WEBHOOKS)
    assert [deployment(manifests, name)["replicas"] for name in (MANAGER, WEBHOOK)] == [2, 3]
    for name, flag, variable, memory in (
        (MANAGER, "--repo-url=http://x", {"name": "A", "value": "b"}, "1Gi"),
        (WEBHOOK, "--context=a", {"name": "C", "value": "d"}, "2Gi"),
    ):
        found = pod(manifests, name)
        (container,) = found["containers"]
        assert (container["image"], container["imagePullPolicy"]) == ("registry.example/a:v9", "Always")
        assert container["args"][-3:] == ["--log-level=debug", "--log-format=json", flag]
        assert container["env"][-1] == variable
        assert container["resources"]["limits"] == {"memory": memory}
        assert found["imagePullSecrets"] == [{"name": "pull"}]
        assert "priorityClassName" not in found
        assert found["hostUsers"] is False
        assert found["tolerations"][-1] == {"key": "a", "operator": "Exists"}
        assert (found["affinity"], found["nodeSelector"]) == ({"nodeAffinity": {"a": "b"}}, {"a": "b"})


def test_manager_without_the_webhook_has_its_port_off(helm: Helm) -> None:
    (container,) = pod(helm.rendered(NO_WEBHOOK))["containers"]
    assert "--webhook-bind-address=0" in container["args"]
    assert {"name": "ENABLE_WEBHOOKS", "value": "false"} in container["env"]
    assert [port["name"] for port in container["ports"]] == ["metrics", "probes"]


PUBLISHED = "rancher/harvester-upgrade-toolkit"
DIGEST = "sha256:" + "0a" * 32


@pytest.mark.rule("workloads: the chart's values toolkit.* are the manager's flags about the toolkit image")
@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        pytest.param([], [], id="the manager's defaults"),
        pytest.param(
            ["toolkit.kind=own", "toolkit.image.repository=registry:5000/own"],
            ["--toolkit-kind=own", "--toolkit-image=registry:5000/own", f"--toolkit-tag=v{__version__}"],
            id="kind own, of the same build",
        ),
        pytest.param(
            ["toolkit.image.repository=a/b", "toolkit.image.tag=v9", f"toolkit.image.digest={DIGEST}"],
            [f"--toolkit-image=a/b@{DIGEST}", "--toolkit-tag=v9"],
            id="tag and digest",
        ),
        pytest.param([f"toolkit.image.digest={DIGEST}"], [f"--toolkit-image={PUBLISHED}@{DIGEST}"], id="digest"),
        pytest.param(
            [
                "toolkit.image.repository=a:5000/b",
                'toolkit.imagePrefixes=["c", "a"]',
                'extraArgs=["--repo-url=http://x"]',
            ],
            ["--toolkit-image=a:5000/b", "--toolkit-image-prefix=c", "--toolkit-image-prefix=a", "--repo-url=http://x"],
            id="prefixes",
        ),
    ],
)
def test_toolkit_values_are_flags_of_the_manager(helm: Helm, settings: list[str], flags: list[str]) -> None:
    (container,) = pod(helm.rendered(*settings))["containers"]
    begin = container["args"].index("--log-format=auto") + 1
    assert container["args"][begin:] == flags
    options = parse_options(container["args"], {})
    assert isinstance(options, RunOptions)
    assert options.toolkit.kind == ("own" if "toolkit.kind=own" in settings else "harvester")


#: In full: by server-side apply, another type does not remove fields that Kubernetes has set by default.
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


@pytest.mark.parametrize(
    ("settings", "strategy"),
    [
        pytest.param(["replicas=1"], ROLLING, id="one replica with leader election"),
        pytest.param(["leaderElection.enabled=false", "replicas=1"], {"type": "Recreate"}, id="no leader election"),
        pytest.param(["leaderElection.enabled=false", "replicas=0"], {"type": "Recreate"}, id="scaled down"),
    ],
)
def test_old_pod_ends_first_without_leader_election(
    helm: Helm, settings: list[str], strategy: dict[str, object]
) -> None:
    manifests = helm.rendered(*settings)
    assert deployment(manifests)["strategy"] == strategy
    assert deployment(manifests, WEBHOOK)["strategy"] == ROLLING


def test_monitoring_follows_its_values(helm: Helm) -> None:
    settings = ["prometheusRule.labels.release=a", "prometheusRule.runbookURL=https://a.example/b", NO_WEBHOOK]
    settings += ["prometheusRule.enabled=true", "dashboard.enabled=true", "dashboard.namespace=b"]
    found = {one["kind"]: one for one in helm.rendered(*settings)}
    rule = found["PrometheusRule"]
    alerts = {alert["alert"]: alert for alert in rule["spec"]["groups"][0]["rules"]}
    assert rule["metadata"]["labels"]["release"] == "a"
    assert "WebhookDown" not in alerts
    assert alerts["ManagerDown"]["annotations"]["runbook_url"] == "https://a.example/b/ManagerDown.md"
    assert found["ConfigMap"]["metadata"]["namespace"] == "b"


@pytest.mark.rule("workloads: the manager's image is pinned by its digest, which wins over a tag")
@pytest.mark.parametrize("tag", ["", "v9", f"v9@sha256:{'b' * 64}"])
def test_digest_wins_over_the_tag(helm: Helm, tag: str) -> None:
    found = helm.rendered("image.repository=r:5000/a", f"image.tag={tag}", f"image.digest=sha256:{'a' * 64}")
    images = {container["image"] for name in (MANAGER, WEBHOOK) for container in pod(found, name)["containers"]}
    assert images == {f"r:5000/a@sha256:{'a' * 64}"}
