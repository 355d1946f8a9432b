"""Values that the chart refuses, with what to do."""

from __future__ import annotations

import pytest

from tests.support.programs.helm import CHART, MANAGER, WEBHOOK, Helm, pod
from tests.support.programs.kustomize import DEFAULT, rendered

pytestmark = pytest.mark.assets

DIGEST = "sha256:" + "0a" * 32


UNUSED_POLICY = "set networkPolicy.enabled=true"
#: Values by what is wrong with them, and what the refusal says.
REFUSED = {
    "unknown value": ("replica=3", "additional properties 'replica' not allowed"),
    "wrong type": ("replicas=two", "/replicas"),
    "no leader": ("leaderElection.enabled=false", "Set leaderElection.enabled=true or replicas=1"),
    "unused issuer": ("webhook.certManager.issuerRef.name=a", "set webhook.certificates=cert-manager"),
    "unused CIDRs": ("networkPolicy.enabled=false,networkPolicy.apiServers={192.0.2.1/32}", UNUSED_POLICY),
    "unused ports": ("networkPolicy.enabled=false,networkPolicy.egressPorts={443}", UNUSED_POLICY),
    "name of a port": ("networkPolicy.egressPorts={https}", "/networkPolicy/egressPorts/0"),
    "certificates": ("webhook.certificates=none", "must be one of 'self-made', 'cert-manager'"),
    "log level": ("log.level=trace", "must be one of 'debug', 'info', 'warning', 'error'"),
    "budget of 0": ("podDisruptionBudget.maxUnavailable=0", "/podDisruptionBudget/maxUnavailable"),
    "issuer without a name": ("webhook.certManager.issuerRef.kind=Issuer", "issuerRef"),
    "name instead of a CIDR": ('networkPolicy.apiServers=["node-1"]', "does not match pattern"),
    "flag of a value": ('extraArgs=["--leader-elect=false"]', "set leaderElection.enabled instead"),
    "flag and argument": ('extraArgs=["--log-level", "debug"]', "set log.level instead"),
    "certificates' path": ('extraArgs=["--webhook-cert-path=/a"]', "set webhook.certificates instead"),
    # The ServiceMonitor reads them over TLS.
    "plain metrics": ('extraArgs=["--metrics-secure=false"]', f"bind the ClusterRole {MANAGER}-metrics-reader"),
    "access to kubelets": ('extraArgs=["--kubelet-access=proxy"]', "set kubelets.viaProxy instead"),
    "another port of the metrics": ('extraArgs=["--metrics-bind-address=:1"]', "remove it"),
    "another port as an item": ('extraArgs=["--metrics-bind-address", ":1"]', "remove it"),
    "no probes": ('extraArgs=["--health-probe-bind-address=0"]', "remove it"),
    "variable of a value": ('env=[{"name": "ENABLE_WEBHOOKS"}]', "set webhook.enabled instead"),
    "variable of the chart": ('env=[{"name": "POD_NAMESPACE", "value": "a"}]', "remove it"),
    "webhook's flag": ('webhook.extraArgs=["--log-level=debug"]', "webhook.extraArgs has --log-level=debug"),
    "neither a boolean nor empty": ("hostUsers=no", "/hostUsers"),
    "webhook's replicas": ("webhook.replicas=two", "/webhook/replicas"),
    "not a tag": ("image.tag=registry:v9", "/image/tag"),
    "kind own without an image": ("toolkit.kind=own", "toolkit.image.repository is empty"),
    "not a kind": ("toolkit.kind=mine", "must be one of 'own', 'harvester'"),
    "not a tag of the toolkit": ("toolkit.image.tag=a/b", "/toolkit/image/tag"),
    "not a digest": ("toolkit.image.digest=sha256:ab", "/toolkit/image/digest"),
    "digest in the name": (f"toolkit.image.repository=a/b@{DIGEST}", "/toolkit/image/repository"),
    "prefix with a slash at its end": ('toolkit.imagePrefixes=["a/"]', "/toolkit/imagePrefixes"),
    "repository outside": ('toolkit.imagePrefixes=["ranch"]', "no prefix of rancher/harvester"),
    "flag --toolkit-kind": ('extraArgs=["--toolkit-kind=a"]', "set toolkit.kind instead"),
    "flag --toolkit-image": ('extraArgs=["--toolkit-image=a"]', "set toolkit.image.repository and"),
    "flag --toolkit-tag": ('extraArgs=["--toolkit-tag=a"]', "set toolkit.image.tag instead"),
    "flag --toolkit-image-prefix": ('extraArgs=["--toolkit-image-prefix=a"]', "set toolkit.imagePrefixes instead"),
    "digest that is cut off": ("image.digest=sha256:abc", "/image/digest"),
    "digest without its algorithm": (f"image.digest={'a' * 64}", "/image/digest"),
    "digest in upper case": (f"image.digest=sha256:{'A' * 64}", "/image/digest"),
    "no image": ("image.repository=", "image.repository is empty: set it to the image that make docker-build"),
    "tag in the image's name": ("image.repository=registry.example/a:v1", "/image/repository"),
    "image of a URL": ("image.repository=https://registry.example/a", "/image/repository"),
    "name in upper case": ("image.repository=registry.example/Team/a", "/image/repository"),
    "toolkit of a URL": ("toolkit.image.repository=https://a/b", "/toolkit/image/repository"),
    "quantity without a unit": ("resources.limits.memory=256MB", "/resources/limits/memory"),
    "quantity below 0": ("resources.requests.cpu=-1", "/resources/requests/cpu"),
    "webhook's quantity": ("webhook.resources.requests.cpu=a few", "/webhook/resources/requests/cpu"),
    "resource with a blank": ("resources.limits.my cpu=1", "invalid propertyName 'my cpu'"),
    "digest with a tag": (f"image.digest=v1@sha256:{'a' * 64}", "/image/digest"),
}


@pytest.mark.parametrize(("setting", "message"), REFUSED.values(), ids=REFUSED)
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
