from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.cli.options import KubeletAccess, RunOptions, parse_options
from upgrade_manager.cli.user_options import PreflightOptions, StatusOptions
from upgrade_manager.runtime.logging import LogFormat


def options(*flags: str, **environ: str) -> RunOptions:
    parsed = parse_options(["run", *flags], environ)
    assert isinstance(parsed, RunOptions)
    return parsed


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        pytest.param([], "kubeconfig", "", id="no kubeconfig"),
        pytest.param(["--kubeconfig", "/x"], "kubeconfig", "/x", id="a kubeconfig"),
        pytest.param(["--context", "c"], "context", "c", id="a context"),
        pytest.param([], "leader_elect", False, id="no leader election by default"),
        pytest.param(["--leader-elect"], "leader_elect", True, id="leader election"),
        pytest.param(["--leader-elect=true"], "leader_elect", True, id="leader election as in Go"),
        pytest.param(["--leader-elect=false"], "leader_elect", False, id="leader election off"),
        pytest.param(["--leader-elect=1"], "leader_elect", True, id="leader election by number"),
        pytest.param([], "metrics", ("", 8443), id="metrics on 8443"),
        pytest.param(["--metrics-bind-address", "0"], "metrics", None, id="no metrics"),
        pytest.param(["--metrics-bind-address=[::1]:9"], "metrics", ("::1", 9), id="metrics elsewhere"),
        pytest.param([], "metrics_secure", True, id="metrics over TLS"),
        pytest.param(["--metrics-secure=false"], "metrics_secure", False, id="plain metrics"),
        pytest.param([], "probes", ("", 8081), id="probes on 8081"),
        pytest.param(["--health-probe-bind-address=0"], "probes", None, id="no probes"),
        pytest.param([], "webhook", ("", 9443), id="webhook on 9443"),
        pytest.param(["--webhook-bind-address=0"], "webhook", None, id="no webhook"),
        pytest.param([], "webhook_certificates", "", id="a self-made certificate"),
        pytest.param(["--log-level", "debug"], "log_level", "debug", id="a level"),
        pytest.param(["--log-format=json"], "log_format", LogFormat("json"), id="a format"),
        pytest.param([], "kubelet_access", None, id="kubelets by where the manager runs"),
        pytest.param(["--kubelet-access=direct"], "kubelet_access", KubeletAccess.DIRECT, id="kubelets directly"),
        pytest.param(["--kubelet-access=proxy"], "kubelet_access", KubeletAccess.PROXY, id="kubelets by the proxy"),
        pytest.param(["--repo-url=https://x/{plan}"], "repo_url", "https://x/{plan}", id="a repository elsewhere"),
    ],
)
def test_flag_sets_its_option(flags: list[str], field: str, value: Any) -> None:
    assert getattr(options(*flags), field) == value


def test_webhook_command_upgrades_nothing() -> None:
    given = ["--webhook-bind-address=:1", "--webhook-cert-path=/x", "--metrics-secure=false"]
    parsed = parse_options(["webhook", *given], {"ENABLE_WEBHOOKS": "false", "POD_NAMESPACE": "n"})
    assert isinstance(parsed, RunOptions)
    assert (parsed.webhook_only, parsed.webhooks, parsed.leader_elect) == (True, True, False)
    assert (parsed.webhook, parsed.webhook_certificates, parsed.namespace) == (("", 1), "/x", "n")
    assert not options().webhook_only


@pytest.mark.rule(
    "workloads: Jobs use the service account harvester or UPGRADE_JOB_SERVICE_ACCOUNT",
    "workloads: Plans use the service account system-upgrade-controller or UPGRADE_PLAN_SERVICE_ACCOUNT",
)
@pytest.mark.parametrize(
    ("environ", "field", "value"),
    [
        pytest.param({}, "namespace", "harvester-system", id="default namespace"),
        pytest.param({"POD_NAMESPACE": "x"}, "namespace", "x", id="namespace of the Pod"),
        pytest.param({"POD_NAMESPACE": ""}, "namespace", "harvester-system", id="empty namespace"),
        pytest.param({}, "job_service_account", "harvester", id="default account of Jobs"),
        pytest.param({"UPGRADE_JOB_SERVICE_ACCOUNT": "a"}, "job_service_account", "a", id="account of Jobs"),
        pytest.param({}, "plan_service_account", "system-upgrade-controller", id="default account of Plans"),
        pytest.param({"UPGRADE_PLAN_SERVICE_ACCOUNT": "a"}, "plan_service_account", "a", id="account of Plans"),
        pytest.param({}, "webhooks", True, id="webhooks by default"),
        pytest.param({"ENABLE_WEBHOOKS": "false"}, "webhooks", False, id="no webhooks"),
        pytest.param({"ENABLE_WEBHOOKS": "FALSE"}, "webhooks", False, id="no webhooks in capitals"),
        pytest.param({"ENABLE_WEBHOOKS": "true"}, "webhooks", True, id="webhooks"),
        pytest.param({"ENABLE_WEBHOOKS": "0"}, "webhooks", False, id="no webhooks by number"),
        pytest.param({"ENABLE_WEBHOOKS": ""}, "webhooks", True, id="webhooks by an empty variable"),
    ],
)
def test_environment_variable_sets_its_option(environ: dict[str, str], field: str, value: Any) -> None:
    assert getattr(options(**environ), field) == value


BAD_URLS = (
    *("ftp://x", "http://", "http:///path", "http://:80", "http://ho st/", "http://host/a\tb", "http://host\n"),
    *("http://{nope}/", "http://{service", "http://x/{plan}}", "http://host:99999", "http://host:port", "http://[::1"),
    *("http://a,b", "http://a b@host", "http://host/?a=b", "http://host/#a", "http://-host", "http://a..b"),
)
GOOD_URLS = (
    *("http://{service}.harvester-system", "https://{plan}.example.org:8443/{service}/x", "HTTP://host"),
    *("http://127.0.0.1:8080/", "http://[::1]:80", "http://under_score.", "http://user:pass@host"),
)


@pytest.mark.parametrize("url", GOOD_URLS)
def test_http_url_with_placeholders_is_accepted(url: str) -> None:
    assert options(f"--repo-url={url}").repo_url == url


@pytest.mark.parametrize("value", ["foo", "off", " false"])
def test_unknown_value_of_enable_webhooks_is_refused(capsys: pytest.CaptureFixture[str], value: str) -> None:
    with pytest.raises(SystemExit) as caught:
        options(ENABLE_WEBHOOKS=value)
    assert caught.value.code == 2
    message = f"environment variable ENABLE_WEBHOOKS: {value!r} is neither true nor false"
    assert capsys.readouterr().err == f"upgrade-manager run: {message} (see upgrade-manager run --help)\n"


NOT_A_URL = "argument --repo-url: not of the form http[s]://HOST[:PORT][/PATH]"
#: Command lines, and a part of the line that refuses them.
USAGE_ERRORS = {
    "": "COMMAND",
    "walk": "walk",
    "run --frobnicate": "unrecognized arguments: --frobnicate (see upgrade-manager run",
    "status a b": "unrecognized arguments: b (see upgrade-manager status",
    "status up/demo": "'up/demo'",
    "status Demo,x=y": "'Demo,x=y'",
    "status -o html": "invalid choice: 'html'",
    "preflight -o yaml": "invalid choice: 'yaml'",
    "preflight -f": "expected one argument",
    "report": "the following arguments are required: -o",
    "report up/demo -o -": "'up/demo'",
    "report -o": "expected one argument",
    "steps --from v1.7.1": "the following arguments are required: --to",
    "completion ksh": "invalid choice: 'ksh'",
    "webhook --leader-elect": "--leader-elect",
    "run surplus": "surplus",
    "run --kubeconfig": "expected one argument",
    "run --leader-elect=maybe": "neither true nor false",
    "run --log-level=loud": "loud",
    "run --log-format=xml": "xml",
    "run --metrics-bind-address=8443": "argument --metrics-bind-address: '8443' is neither [HOST]:PORT nor 0",
    "run --metrics-bind-address=:99999": "argument --metrics-bind-address: ':99999': port 99999 is above 65535",
    "run --health-probe-bind-address=:x": "neither [HOST]:PORT nor 0",
    "status --watch --timeout=1h": "--timeout and --fail-on-stall need --watch and --exit-code",
    "status --exit-code --fail-on-stall": "--timeout and --fail-on-stall need --watch and --exit-code",
    "node": "the following arguments are required: type",
    "node drain": "argument type: invalid choice: 'drain'",
    "node prepare": "environment variable HARVESTER_UPGRADEPLAN_NAME is not set",
    "version-guard ../x": "argument PLAN: '../x' is not a valid name",
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(pytest.param(line.split(), message, id=line or "no command") for line, message in USAGE_ERRORS.items()),
        *(pytest.param(["run", f"--repo-url={url}"], NOT_A_URL, id=f"the URL {url!r}") for url in BAD_URLS),
    ],
)
def test_usage_error_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_options(arguments, {})
    assert caught.value.code == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert message in text
    assert "--help)" in text


def test_usage_error_has_no_password(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options(["run", "--repo-url=http://robot:canary@host:port"], {})
    assert "canary" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("preflight", PreflightOptions()),
        ("preflight -f - -o json", PreflightOptions(file="-", output="json")),
        ("preflight --filename=plan.yaml --output=table", PreflightOptions(file="plan.yaml")),
        ("preflight --kubeconfig=/x", PreflightOptions(kubeconfig="/x")),
        ("status", StatusOptions()),
        ("status demo -w -o yaml", StatusOptions(plan="demo", watch=True, output="yaml")),
        ("status --watch --output=json to-v1.8.0", StatusOptions(plan="to-v1.8.0", watch=True, output="json")),
        ("status --kubeconfig=/x", StatusOptions(kubeconfig="/x")),
        (
            "status -w --exit-code --timeout 1h --fail-on-stall",
            StatusOptions(watch=True, exit_code=True, timeout=3600.0, fail_on_stall=True),
        ),
    ],
)
def test_flags_of_users_commands_set_their_options(line: str, expected: PreflightOptions | StatusOptions) -> None:
    assert parse_options(line.split(), {}) == expected
