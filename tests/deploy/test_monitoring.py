"""A real Prometheus scrapes two managers in an upgrade; dashboard and alerts show what the plan's status does."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import yaml

from hack.control_plane.control_plane import ADMIN
from hack.demo.ports import HOST
from tests.support.cluster.monitored_cluster import SCRAPER, STRANGER, MonitoredCluster, monitored_cluster
from tests.support.cluster.simulate import simulate_on
from tests.support.managers.upgrade import BY_VERSION, PLAN, node_states, seconds_of_phases
from tests.support.programs.dashboard import all_expressions, expressions
from tests.support.programs.kustomize import DEPLOY
from tests.support.programs.polling import eventually
from tests.support.programs.prometheus import TIMEOUT, Prometheus, prometheus, promtool
from upgrade_manager.api.conditions import CONDITION_TYPES
from upgrade_manager.api.keys import ANNOTATION_SKIP_WEBHOOK
from upgrade_manager.api.progress import progress_ratio
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hack.control_plane.control_plane import ControlPlane
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

    #: By the values of their labels, in the order of the labels' names.
    Values = dict[tuple[str, ...], float]

#: The label that the Prometheus operator copies from the Service.
JOB = "harvester-upgrade-manager"
VARIABLES = {"__rate_interval": "1m", "__range": "5m", "plan": PLAN, "job": JOB}
MONITOR = yaml.safe_load((DEPLOY / "prometheus/service-monitor.yaml").read_text())["spec"]["endpoints"][0]
RULES = yaml.safe_load((DEPLOY / "prometheus/prometheus-rule.yaml").read_text())["spec"]
_SELECTOR = re.compile(r"\b((?:harvester|leader|apiserver)_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)=~?"([^"]*)"')
#: Matchers that select a healthy upgrade's series, too.
_IDENTITIES = {"name", "type"}


def documented_queries() -> list[str]:
    """Return the queries in docs/metrics.md, each of which ends with a comment."""
    (block,) = re.findall(r"```promql\n(.*?)```", (DEPLOY.parent / "docs/metrics.md").read_text(), re.DOTALL)
    found = re.findall(r"(.+?)\s+# [^\n]*\n", block.replace("PLAN", PLAN), re.DOTALL)
    assert len(found) == block.count("#")
    return found


async def config(cluster: MonitoredCluster, plane: ControlPlane) -> dict[str, Any]:
    """Scrape as the ServiceMonitor does, with two service accounts, and the API server; with the shipped rules."""
    (cluster.children.folder / "rules.yaml").write_text(yaml.safe_dump(RULES))
    targets = [{"targets": [f"{HOST}:{one.metrics}" for one in cluster.scraped]}]
    common = {"scheme": MONITOR["scheme"], "metrics_path": MONITOR["path"]}
    common["tls_config"] = {"insecure_skip_verify": MONITOR["tlsConfig"]["insecureSkipVerify"]}

    def job(name: str, token: str, targets: list[dict[str, list[str]]], **more: Any) -> dict[str, Any]:
        return {**common, "job_name": name, "authorization": {"credentials": token}, "static_configs": targets, **more}

    kept = [{"action": "keep", "source_labels": ["__name__"], "regex": "apiserver_admission_webhook_.*"}]
    api_server = [{"targets": [urlsplit(plane.url).netloc]}]
    jobs = [
        job(JOB, await cluster.token(SCRAPER), targets),
        job("stranger", await cluster.token(STRANGER), targets),
        job("apiserver", ADMIN.token, api_server, metric_relabel_configs=kept),
    ]
    return {"rule_files": ["rules.yaml"], "scrape_configs": jobs}


async def bind_reader(client: Client) -> None:
    """Create the ClusterRoleBinding of the scraper."""
    binding = yaml.safe_load((DEPLOY / "prometheus/metrics-reader.yaml").read_text())
    with suppress(AlreadyExists):
        await client.raw("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body=binding)


async def scrapes_are_authorized(server: Prometheus) -> None:
    async def is_refused() -> bool:
        active = (await server.get("targets"))["activeTargets"]
        errors = {one["lastError"] for one in active if one["labels"]["job"] == "stranger"}
        return errors == {"server returned HTTP status 403 Forbidden"}

    await server.until(f'sum(up{{job="{JOB}"}}) == 3')
    await eventually(is_refused, seconds=TIMEOUT)
    await server.until_empty("ALERTS")


async def exposition_is_clean(cluster: MonitoredCluster) -> None:
    headers = {"Authorization": f"Bearer {await cluster.token(SCRAPER)}"}
    async with aiohttp.ClientSession(headers=headers) as http:
        for one in cluster.scraped:
            async with http.get(f"https://{HOST}:{one.metrics}/metrics", ssl=False) as response:
                checked = await promtool("check", "metrics", stdin=await response.read())
            assert (checked.code, checked.out, checked.err) == (0, "", "")


async def agree(server: Prometheus, cluster: MonitoredCluster, panels: dict[str, Callable[[Object], Values]]) -> None:
    """Wait until each panel shows what is computed from the plan."""
    for title, compute in panels.items():
        (expression,) = expressions(title, **VARIABLES)
        compared: list[tuple[Values, Values]] = []

        async def is_equal(
            expression: str = expression,
            compute: Callable[[Object], Values] = compute,
            compared: list[tuple[Values, Values]] = compared,
        ) -> bool:
            samples = await server.query(expression)
            found = {tuple(one.labels[key] for key in sorted(one.labels)): one.value for one in samples}
            compared.append((found, compute(await cluster.stage.plan())))
            return found == compared[-1][1]

        with suppress(TimeoutError):
            await eventually(is_equal, seconds=TIMEOUT, pause=0.2)
        assert compared[-1][0] == compared[-1][1], title


async def selectors_match(server: Prometheus) -> None:
    """Check that each selector of the alerts has series, whatever the values that make the alert fire."""
    for rule in [rule for group in RULES["groups"] for rule in group["rules"]]:
        for metric, matchers in _SELECTOR.findall(rule["expr"]):
            selector = _MATCHER.sub(_any_value, matchers)
            await server.until(f"count(last_over_time({metric}{{{selector}}}[10m]))")


def _any_value(matcher: re.Match[str]) -> str:
    return matcher[0] if matcher[1] in _IDENTITIES else f'{matcher[1]}!=""'


def states(plan: Object) -> Values:
    return {(state,): float(count) for state, count in Counter(node_states(plan).values()).items()}


def ratio(plan: Object) -> Values:
    return {(PLAN,): progress_ratio(objects.status(plan))}


def versions(plan: Object) -> Values:
    status = objects.status(plan)
    return {(status["previousVersion"], status["releaseMetadata"]["harvester"]): 1}


RUNNING: dict[str, Callable[[Object], Values]] = {
    "Phase": lambda _: {("NodeUpgrade",): 1},
    "Release": versions,
    "Attempt": lambda _: {(PLAN,): 1},
    "Stalled": lambda _: {(PLAN,): 0},
    "Progress": ratio,
    "Nodes by state": states,
    "Nodes": lambda plan: dict.fromkeys(node_states(plan).items(), 1),
    "Blockers": lambda plan: {(one["reason"],): 1 for one in objects.status(plan)["blockers"]},
    "Conditions": lambda plan: {(type_,): float(objects.is_condition_true(plan, type_)) for type_ in CONDITION_TYPES},
}
ENDED: dict[str, Callable[[Object], Values]] = {
    "Phase": lambda _: {("Succeeded",): 1},
    "Release": versions,
    "Stalled": lambda _: {},
    "Progress": ratio,
    "Nodes by state": states,
    "Nodes": lambda _: {},
    "Blockers": lambda _: {},
    "Duration of each phase": lambda plan: {(phase,): value for phase, value in seconds_of_phases(plan).items()},
    "Mean duration of phases that ended": lambda plan: {
        (phase,): value for phase, value in seconds_of_phases(plan).items()
    },
}


@pytest.mark.rule(
    "metrics: Prometheus scrapes over TLS with the token of a service account, and others are refused",
    "metrics: each query of the dashboard shows what the plan's status does",
)
@pytest.mark.assets
@pytest.mark.real_loop
async def test_prometheus_shows_what_the_status_does(control_plane: ControlPlane) -> None:
    async with simulate_on(control_plane)() as simulation, monitored_cluster(simulation) as cluster:
        stage = cluster.stage
        await bind_reader(stage.client)
        async with prometheus(cluster.children, await config(cluster, control_plane)) as server:
            await cluster.start()
            await scrapes_are_authorized(server)
            await stage.create_plan({**BY_VERSION, "nodeUpgradeOption": {"pauseNodes": ["node-0"]}})
            await stage.until_plan(lambda plan: bool(objects.status(plan).get("blockers")))
            await agree(server, cluster, RUNNING)
            queries = [expression for _, expression in all_expressions(**VARIABLES)] + documented_queries()
            empty = [expression for expression in queries if not await server.query(expression)]
            await exposition_is_clean(cluster)
            await stage.patch(spec={"nodeUpgradeOption": {"pauseNodes": []}})
            assert await stage.until_ended() == "Succeeded"
            await agree(server, cluster, ENDED)
            for expression in empty:
                await server.until(expression)
            await selectors_match(server)
            await server.until_empty("ALERTS")
            await alerts_fire(server, cluster)


async def alerts_fire(server: Prometheus, cluster: MonitoredCluster) -> None:
    """Create a plan that fails, and one that is retried; then stop the managers."""
    stage = cluster.stage

    async def create(name: str, version: str) -> None:
        metadata = {"name": name, "annotations": {ANNOTATION_SKIP_WEBHOOK: "true"}}
        head = {"apiVersion": UPGRADE_PLANS.api_version, "kind": UPGRADE_PLANS.kind, "metadata": metadata}
        await stage.simulation.apply({**head, "spec": {"version": version}})

    # All nodes run this release, and the other one does not exist.
    await create("failing", BY_VERSION["version"])
    await server.until('ALERTS{alertname="UpgradeFailed",alertstate="firing",plan="failing"}')
    await create("retried", "v9.9.9")
    await server.until('ALERTS{alertname="UpgradeDegraded",plan="retried"}')
    assert await server.query('ALERTS{alertname="UpgradeDegraded",plan="failing"}') == []
    await stage.client.delete(UPGRADE_PLANS, "failing")
    await server.until_empty('{plan="failing"}')
    await cluster.stop()
    await server.until('ALERTS{alertname="ManagerDown",severity="critical"}')
    await server.until('ALERTS{alertname="WebhookDown",severity="warning"}')
