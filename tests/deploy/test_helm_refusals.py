"""Values that the chart refuses, with what to do."""

from __future__ import annotations

import pytest

from tests.support.programs.helm import CHART, MANAGER, WEBHOOK, Helm, pod
from tests.support.programs.kustomize import DEFAULT, rendered

pytestmark = pytest.mark.assets

DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        pytest.param("replica=3", "additional properties 'replica' not allowed", id="unknown value"),
        pytest.param("replicas=two", "/replicas", id="wrong type"),
        pytest.param("leaderElection.enabled=false", "Set leaderElection.enabled=true or replicas=1", id="no leader"),
        pytest.param(
            "webhook.certManager.issuerRef.name=a", "set webhook.certificates=cert-manager", id="unused issuer"
        ),
        pytest.param(
            "networkPolicy.enabled=false,networkPolicy.apiServers={192.0.2.1/32}",
            "set networkPolicy.enabled=true",
            id="unused CIDRs",
        ),
        pytest.param(
            "networkPolicy.enabled=false,networkPolicy.egressPorts={443}",
            "set networkPolicy.enabled=true",
            id="unused ports",
        ),
        pytest.param("networkPolicy.egressPorts={https}", "/networkPolicy/egressPorts/0", id="name of a port"),
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
        pytest.param('extraArgs=["--kubelet-access=proxy"]', "set kubelets.viaProxy instead", id="access to kubelets"),
        pytest.param('extraArgs=["--metrics-bind-address=:1"]', "remove it", id="another port of the metrics"),
        pytest.param('extraArgs=["--metrics-bind-address", ":1"]', "remove it", id="another port as an item"),
        pytest.param('extraArgs=["--health-probe-bind-address=0"]', "remove it", id="no probes"),
        pytest.param('env=[{"name": "ENABLE_WEBHOOKS"}]', "set webhook.enabled instead", id="variable of a value"),
        pytest.param('env=[{"name": "POD_NAMESPACE", "value": "a"}]', "remove it", id="variable of the chart"),
        pytest.param(
            'webhook.extraArgs=["--log-level=debug"]', "webhook.extraArgs has --log-level=debug", id="webhook's flag"
        ),
        pytest.param("hostUsers=no", "/hostUsers", id="neither a boolean nor empty"),
        pytest.param("webhook.replicas=two", "/webhook/replicas", id="webhook's replicas"),
        pytest.param("image.tag=registry:v9", "/image/tag", id="not a tag"),
        pytest.param("toolkit.kind=own", "toolkit.image.repository is empty", id="kind own without an image"),
        pytest.param("toolkit.kind=mine", "must be one of 'own', 'harvester'", id="not a kind"),
        pytest.param("toolkit.image.tag=a/b", "/toolkit/image/tag", id="not a tag of the toolkit"),
        pytest.param("toolkit.image.digest=sha256:ab", "/toolkit/image/digest", id="not a digest"),
        pytest.param(f"toolkit.image.repository=a/b@{DIGEST}", "/toolkit/image/repository", id="digest in the name"),
        pytest.param('toolkit.imagePrefixes=["a/"]', "/toolkit/imagePrefixes", id="prefix with a slash at its end"),
        pytest.param('toolkit.imagePrefixes=["ranch"]', "no prefix of rancher/harvester", id="repository outside"),
        *(
            pytest.param(f'extraArgs=["--toolkit-{flag}=a"]', f"set toolkit.{value}", id=f"flag --toolkit-{flag}")
            for flag, value in (
                ("kind", "kind instead"),
                ("image", "image.repository and"),
                ("tag", "image.tag instead"),
                ("image-prefix", "imagePrefixes instead"),
            )
        ),
        pytest.param("image.digest=sha256:abc", "/image/digest", id="digest that is cut off"),
        pytest.param(f"image.digest={'a' * 64}", "/image/digest", id="digest without its algorithm"),
        pytest.param(f"image.digest=sha256:{'A' * 64}", "/image/digest", id="digest in upper case"),
        pytest.param(f"image.digest=v1@sha256:{'a' * 64}", "/image/digest", id="digest with a tag"),
    ],
)
def test_wrong_value_is_refused(helm: Helm, setting: str, message: str) -> None:
    flag = "--set-json" if "=[" in setting else "--set"
    ended = helm.run("template", "x", str(CHART), flag, setting)
    assert ended.returncode == 1
    assert message in ended.stderr


@pytest.mark.parametrize(("name", "prefix"), [(MANAGER, ""), (WEBHOOK, "webhook.")])
def test_nothing_that_the_template_sets_is_overridden(helm: Helm, name: str, prefix: str) -> None:
    (container,) = pod(rendered(DEFAULT), name)["containers"]
    settings = [f'{prefix}extraArgs=["{flag.partition("=")[0]}"]' for flag in container["args"] if flag[:2] == "--"]
    settings += [f'{prefix}env=[{{"name": "{variable["name"]}"}}]' for variable in container["env"]]
    accepted = [
        setting for setting in settings if helm.run("template", "x", str(CHART), "--set-json", setting).returncode == 0
    ]
    assert len(settings) > len(container["env"])
    assert accepted == []


@pytest.mark.parametrize(("name", "value"), [("extraArgs", '["--context=a"]'), ("env", '[{"name": "A"}]')])
def test_webhooks_values_need_its_deployment(helm: Helm, name: str, value: str) -> None:
    settings = ("--set", "webhook.separate=false", "--set-json", f"webhook.{name}={value}")
    ended = helm.run("template", "x", str(CHART), *settings)
    assert ended.returncode == 1
    assert f"webhook.{name} is set and webhook.separate is false: set {name} instead" in ended.stderr


def test_other_namespace_is_refused(helm: Helm) -> None:
    ended = helm.run("template", "x", str(CHART), namespace="default")
    assert ended.returncode == 1
    assert "add --namespace harvester-system" in ended.stderr
