"""The chart, as Helm renders it, against the kustomizations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.helm import CHART, LABELS, Helm, without_release
from tests.support.kustomize import COMPONENTS, DEFAULT, rendered, title, with_components

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.assets

ALL = (
    "webhook.certificates=cert-manager",
    "serviceMonitor.enabled=true",
    "prometheusRule.enabled=true",
    "dashboard.enabled=true",
    "networkPolicy.enabled=true",
)


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    return Helm(tmp_path)


def by_title(manifests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = {title(manifest): manifest for manifest in manifests}
    assert len(found) == len(manifests)
    return found


def pod(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    (deployment,) = [one for one in manifests if one["kind"] == "Deployment"]
    return dict(deployment["spec"]["template"]["spec"])


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


@pytest.mark.parametrize(
    ("settings", "missing", "added"),
    [
        pytest.param(
            ["webhook.enabled=false"],
            {"ValidatingWebhookConfiguration", "Secret"},
            set[str](),
            id="without the webhook",
        ),
        pytest.param(
            ["webhook.enabled=false", "webhook.certificates=cert-manager"],
            {"ValidatingWebhookConfiguration", "Secret"},
            set[str](),
            id="without the webhook, its certificate is not made either",
        ),
        pytest.param(
            [
                "webhook.certificates=cert-manager",
                "webhook.certManager.issuerRef.name=a",
                "webhook.certManager.issuerRef.kind=ClusterIssuer",
            ],
            {"Secret"},
            {"Certificate"},
            id="another issuer",
        ),
        pytest.param(["podDisruptionBudget.enabled=false"], {"PodDisruptionBudget"}, set[str](), id="no budget"),
        pytest.param(["crds.install=false"], {"CustomResourceDefinition"}, set[str](), id="no CRD"),
        pytest.param(["networkPolicy.enabled=true"], set[str](), {"NetworkPolicy"}, id="network policy"),
        pytest.param(["serviceMonitor.enabled=true"], set[str](), {"ServiceMonitor"}, id="ServiceMonitor"),
        pytest.param(["prometheusRule.enabled=true"], set[str](), {"PrometheusRule"}, id="alerts"),
        pytest.param(["dashboard.enabled=true"], set[str](), {"ConfigMap"}, id="dashboard"),
    ],
)
def test_switch_changes_the_kinds(helm: Helm, settings: list[str], missing: set[str], added: set[str]) -> None:
    default = {manifest["kind"] for manifest in rendered(DEFAULT)}
    assert {manifest["kind"] for manifest in helm.rendered(*settings)} == (default - missing) | added


def test_values_reach_the_pod(helm: Helm) -> None:
    found = pod(
        helm.rendered(
            "image.repository=registry.example/a",
            "image.tag=v9",
            "image.pullPolicy=Always",
            'image.pullSecrets=[{"name": "pull"}]',
            "priorityClassName=",
            'tolerations=[{"key": "a", "operator": "Exists"}]',
            "affinity.nodeAffinity.a=b",
            "nodeSelector.a=b",
            "log.level=debug",
            "log.format=json",
            'extraArgs=["--repo-url=http://x"]',
            'env=[{"name": "A", "value": "b"}]',
            "resources.limits.memory=1Gi",
            "webhook.enabled=false",
        )
    )
    (container,) = found["containers"]
    assert (container["image"], container["imagePullPolicy"]) == ("registry.example/a:v9", "Always")
    assert found["imagePullSecrets"] == [{"name": "pull"}]
    assert "priorityClassName" not in found
    assert found["tolerations"][-1] == {"key": "a", "operator": "Exists"}
    assert found["affinity"] == {"nodeAffinity": {"a": "b"}}
    assert found["nodeSelector"] == {"a": "b"}
    flags = ["--webhook-bind-address=0", "--log-level=debug", "--log-format=json", "--repo-url=http://x"]
    assert container["args"][-4:] == flags
    assert {"name": "ENABLE_WEBHOOKS", "value": "false"} in container["env"]
    assert container["env"][-1] == {"name": "A", "value": "b"}
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    assert [port["name"] for port in container["ports"]] == ["metrics", "probes"]


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
    (deployment,) = [one["spec"] for one in helm.rendered(*settings) if one["kind"] == "Deployment"]
    assert deployment["strategy"] == strategy


def test_api_servers_alone_reach_the_webhook(helm: Helm) -> None:
    manifests = helm.rendered("networkPolicy.enabled=true", 'networkPolicy.apiServers=["192.0.2.11/32"]')
    (policy,) = [one["spec"] for one in manifests if one["kind"] == "NetworkPolicy"]
    (rule,) = [rule for rule in policy["ingress"] if {"port": "webhook"} in rule["ports"]]
    assert rule["from"] == [{"ipBlock": {"cidr": "192.0.2.11/32"}}]


def test_monitoring_follows_its_values(helm: Helm) -> None:
    settings = [
        "prometheusRule.labels.release=a",
        "prometheusRule.runbookURL=https://a.example/b",
        "webhook.enabled=false",
    ]
    settings += ["prometheusRule.enabled=true", "dashboard.enabled=true", "dashboard.namespace=b"]
    found = {one["kind"]: one for one in helm.rendered(*settings)}
    rule = found["PrometheusRule"]
    alerts = {alert["alert"]: alert for alert in rule["spec"]["groups"][0]["rules"]}
    assert rule["metadata"]["labels"]["release"] == "a"
    assert "WebhookDown" not in alerts
    assert alerts["ManagerDown"]["annotations"]["runbook_url"] == "https://a.example/b/ManagerDown.md"
    assert found["ConfigMap"]["metadata"]["namespace"] == "b"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        pytest.param("replica=3", "additional properties 'replica' not allowed", id="unknown value"),
        pytest.param("replicas=two", "/replicas", id="wrong type"),
        pytest.param("leaderElection.enabled=false", "Set leaderElection.enabled=true or replicas=1", id="no leader"),
        pytest.param(
            "webhook.certManager.issuerRef.name=a", "set webhook.certificates=cert-manager", id="unused issuer"
        ),
        pytest.param('networkPolicy.apiServers=["192.0.2.1/32"]', "set networkPolicy.enabled=true", id="unused CIDRs"),
        pytest.param("webhook.certificates=none", "must be one of 'self-made', 'cert-manager'", id="certificates"),
        pytest.param("log.level=trace", "must be one of 'debug', 'info', 'warning', 'error'", id="log level"),
        pytest.param("podDisruptionBudget.maxUnavailable=0", "/podDisruptionBudget/maxUnavailable", id="budget of 0"),
        pytest.param("webhook.certManager.issuerRef.kind=Issuer", "issuerRef", id="issuer without a name"),
        pytest.param('networkPolicy.apiServers=["node-1"]', "does not match pattern", id="name instead of a CIDR"),
        pytest.param('extraArgs=["--leader-elect=false"]', "set leaderElection.enabled instead", id="flag of a value"),
        pytest.param('extraArgs=["--log-level", "debug"]', "set log.level instead", id="flag and argument"),
        pytest.param(
            'extraArgs=["--webhook-cert-path=/a"]', "set webhook.certificates instead", id="certificates' path"
        ),
        pytest.param(
            'extraArgs=["--metrics-secure=false"]',
            "bind the ClusterRole harvester-upgrade-manager-metrics-reader",
            id="plain metrics, which the ServiceMonitor reads over TLS",
        ),
        pytest.param('extraArgs=["--metrics-bind-address=:1"]', "remove it", id="another port of the metrics"),
        pytest.param('extraArgs=["--metrics-bind-address", ":1"]', "remove it", id="another port as an item"),
        pytest.param('extraArgs=["--health-probe-bind-address=0"]', "remove it", id="no probes"),
        pytest.param('env=[{"name": "ENABLE_WEBHOOKS"}]', "set webhook.enabled instead", id="variable of a value"),
        pytest.param('env=[{"name": "POD_NAMESPACE", "value": "a"}]', "remove it", id="variable of the chart"),
        pytest.param("image.tag=registry:v9", "/image/tag", id="not a tag"),
    ],
)
def test_wrong_value_is_refused(helm: Helm, setting: str, message: str) -> None:
    flag = "--set-json" if "=[" in setting else "--set"
    ended = helm.run("template", "x", str(CHART), flag, setting)
    assert ended.returncode == 1
    assert message in ended.stderr


def test_nothing_that_the_template_sets_is_overridden(helm: Helm) -> None:
    (container,) = pod(rendered(DEFAULT))["containers"]
    settings = [f'extraArgs=["{flag.partition("=")[0]}"]' for flag in container["args"][1:]]
    settings += [f'env=[{{"name": "{variable["name"]}"}}]' for variable in container["env"]]
    accepted = [
        setting for setting in settings if helm.run("template", "x", str(CHART), "--set-json", setting).returncode == 0
    ]
    assert accepted == []


def test_other_namespace_is_refused(helm: Helm) -> None:
    ended = helm.run("template", "x", str(CHART), namespace="default")
    assert ended.returncode == 1
    assert "add --namespace harvester-system" in ended.stderr
