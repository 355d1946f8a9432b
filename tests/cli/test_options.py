from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.cli.options import RunOptions, parse_options
from upgrade_manager.runtime.logging import LogFormat


def options(*flags: str, **environ: str) -> RunOptions:
    return parse_options(["run", *flags], environ)


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        pytest.param([], "kubeconfig", "", id="no kubeconfig named"),
        pytest.param(["--kubeconfig", "/x"], "kubeconfig", "/x", id="a kubeconfig named"),
        pytest.param([], "leader_elect", False, id="no leader election by default"),
        pytest.param(["--leader-elect"], "leader_elect", True, id="leader election"),
        pytest.param(["--leader-elect=true"], "leader_elect", True, id="as Go programs take it"),
        pytest.param(["--leader-elect=false"], "leader_elect", False, id="switched off"),
        pytest.param(["--leader-elect=1"], "leader_elect", True, id="by number"),
        pytest.param([], "metrics", ("", 8443), id="metrics on 8443"),
        pytest.param(["--metrics-bind-address", "0"], "metrics", None, id="no metrics"),
        pytest.param(["--metrics-bind-address=[::1]:9"], "metrics", ("::1", 9), id="metrics elsewhere"),
        pytest.param([], "metrics_secure", True, id="metrics by TLS"),
        pytest.param(["--metrics-secure=false"], "metrics_secure", False, id="metrics in the clear"),
        pytest.param([], "probes", ("", 8081), id="probes on 8081"),
        pytest.param(["--health-probe-bind-address=0"], "probes", None, id="no probes"),
        pytest.param(["--log-level", "debug"], "log_level", "debug", id="a level"),
        pytest.param(["--log-format=json"], "log_format", LogFormat("json"), id="a format"),
        pytest.param(["--repo-url=https://x/{plan}"], "repo_url", "https://x/{plan}", id="a repository elsewhere"),
    ],
)
def test_a_flag_sets_its_option(flags: list[str], field: str, value: Any) -> None:
    assert getattr(options(*flags), field) == value


@pytest.mark.rule(
    "workloads: Jobs use the service account harvester or UPGRADE_JOB_SERVICE_ACCOUNT",
    "workloads: Plans use the service account system-upgrade-controller or UPGRADE_PLAN_SERVICE_ACCOUNT",
)
@pytest.mark.parametrize(
    ("environ", "field", "value"),
    [
        pytest.param({}, "namespace", "harvester-system", id="the lease's namespace"),
        pytest.param({"POD_NAMESPACE": "x"}, "namespace", "x", id="is the Pod's"),
        pytest.param({"POD_NAMESPACE": ""}, "namespace", "harvester-system", id="an empty one is none"),
        pytest.param({}, "job_service_account", "harvester", id="the Jobs' account"),
        pytest.param({"UPGRADE_JOB_SERVICE_ACCOUNT": "a"}, "job_service_account", "a", id="can be changed"),
        pytest.param({}, "plan_service_account", "system-upgrade-controller", id="the Plans' account"),
        pytest.param({"UPGRADE_PLAN_SERVICE_ACCOUNT": "a"}, "plan_service_account", "a", id="can be changed too"),
        pytest.param({}, "webhooks", True, id="webhooks"),
        pytest.param({"ENABLE_WEBHOOKS": "false"}, "webhooks", False, id="none, as kubebuilder has it"),
        pytest.param({"ENABLE_WEBHOOKS": "FALSE"}, "webhooks", False, id="in capitals too"),
        pytest.param({"ENABLE_WEBHOOKS": "true"}, "webhooks", True, id="webhooks by name"),
    ],
)
def test_the_environment_sets_the_rest(environ: dict[str, str], field: str, value: Any) -> None:
    assert getattr(options(**environ), field) == value


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param([], "COMMAND", id="no command"),
        pytest.param(["walk"], "walk", id="an unknown command"),
        pytest.param(["run", "--frobnicate"], "--frobnicate", id="an unknown flag"),
        pytest.param(["run", "surplus"], "surplus", id="a word too many"),
        pytest.param(["run", "--kubeconfig"], "expected one argument", id="a flag without its value"),
        pytest.param(["run", "--leader-elect=maybe"], "neither true nor false", id="no boolean"),
        pytest.param(["run", "--log-level=loud"], "loud", id="no level"),
        pytest.param(["run", "--log-format=xml"], "xml", id="no format"),
        pytest.param(["run", "--metrics-bind-address=8443"], "[HOST]:PORT", id="no address"),
        pytest.param(["run", "--metrics-bind-address=:70000"], "[HOST]:PORT", id="no port"),
        pytest.param(["run", "--health-probe-bind-address=:x"], "[HOST]:PORT", id="no number"),
        pytest.param(["run", "--repo-url=ftp://x"], "http:// or https://", id="no address of the web"),
    ],
)
def test_what_cannot_be_understood_ends_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_options(arguments, {})
    assert caught.value.code == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert said in text
    assert "--help)" in text
