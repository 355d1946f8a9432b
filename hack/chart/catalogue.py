"""The table of the chart's generated templates: what of each manifest the values change."""

from __future__ import annotations

from hack.chart.deployments import CERT_MANAGER, IN_MANAGER, MANAGER, SEPARATE, VIA_PROXY, WEBHOOK, WEBHOOK_SERVER
from hack.chart.template import Edit, Template, after, when

_SELF_MADE = f'(and {WEBHOOK} (eq .Values.webhook.certificates "self-made"))'
#: As the template of that name: `if` takes a text that is not empty for true.
_POLICIES = 'include "harvester-upgrade-manager.admissionPolicies" .'
_ISSUER = ".Values.webhook.certManager.issuerRef"

#: The value that replaces the start of the alerts' runbook_url.
_RUNBOOKS = "https://github.com/harvester/harvester-upgrade-manager/blob/main/docs/runbooks"
#: The account of a binding.
_SUBJECT = "  - kind: ServiceAccount\n    name: harvester-upgrade-manager"
_WEBHOOK_ACCOUNT = Edit(f"{_SUBJECT}-webhook\n", f"{_SUBJECT}{{{{ if {SEPARATE} }}}}-webhook{{{{ end }}}}\n")
#: The values of both budgets.
_BUDGET = ".Values.podDisruptionBudget"
_DISRUPTIONS = (Edit("maxUnavailable: 1", f"maxUnavailable: {{{{ {_BUDGET}.maxUnavailable }}}}"),)
#: The namespace that scrapes.
_SCRAPERS = Edit("cattle-monitoring-system\n", "{{ .Values.serviceMonitor.serviceAccount.namespace }}\n")
#: More ports of both.
_EGRESS_PORTS = "        {{- range .Values.networkPolicy.egressPorts }}\n        - port: {{ . }}\n        {{- end }}\n"
_ALERTS = (
    "UpgradeFailed",
    "UpgradeStalled",
    "UpgradeDegraded",
    "ManagerDown",
    "WebhookDown",
    "WebhookCertificateExpires",
)


def _aggregated(role: str, *, to: str) -> Edit:
    """Return the edit that adds a role of users to one of Kubernetes."""
    return after(
        f"  name: harvester-upgrade-manager-{role}\n  labels:\n    app.kubernetes.io/name: harvester-upgrade-manager\n",
        "    {{- if .Values.rbac.aggregateToBuiltInRoles }}\n"
        f'    rbac.authorization.k8s.io/aggregate-to-{to}: "true"\n'
        "    {{- end }}\n",
    )


def _injected(kind: str) -> Edit:
    """Return the edit with which cert-manager writes the caBundle."""
    return after(
        f"kind: {kind}\nmetadata:\n",
        f"  {{{{- if {CERT_MANAGER} }}}}\n"
        "  annotations:\n"
        "    cert-manager.io/inject-ca-from: harvester-system/harvester-upgrade-manager-webhook\n"
        "  {{- end }}\n",
    )


_PREFIXES = Edit('["rancher/harvester-upgrade-toolkit"]', '{{ include "harvester-upgrade-manager.imagePrefixes" . }}')


def _account(name: str, default: str) -> Edit:
    """Return the edit that replaces the name of a service account by the variable of the manager's container."""
    found = f'include "harvester-upgrade-manager.variable" (list . "{name}" "{default}")'
    return Edit(f'"{default}"', f"{{{{ {found} | toJson }}}}")


#: The policies for the manager's account, and what of them the values change.
_POLICY_EDITS: dict[str, tuple[Edit, ...]] = {
    "manager-objects": (
        after(
            "      expression: request.namespace != 'fleet-local'\n",
            f"    {{{{- if {IN_MANAGER} }}}}\n"
            "    # The webhook's certificate, which the manager renews.\n"
            "    - name: not-webhook-certificate\n"
            "      expression: >-\n"
            "        !(request.resource.resource == 'secrets' && request.operation == 'UPDATE' && "
            "request.namespace == 'harvester-system'\n"
            "        && request.name == 'harvester-upgrade-manager-webhook-certs')\n"
            "    {{- end }}\n",
        ),
    ),
    "manager-pods": (_PREFIXES, _account("UPGRADE_JOB_SERVICE_ACCOUNT", "harvester")),
    "manager-suc-plans": (_PREFIXES, _account("UPGRADE_PLAN_SERVICE_ACCOUNT", "system-upgrade-controller")),
    "manager-cluster": (),
    "manager-settings": (),
    "manager-update-methods": (),
    "manager-plans": (_PREFIXES,),
    "manager-active-plan": (),
}

#: Files that the chart's own templates read, by their path in the chart: the path in deploy.
COPIES = {"files/dashboard.json": "grafana/dashboard.json"}

TEMPLATES = (
    Template(
        source="crds/management.harvesterhci.io_upgradeplans.yaml",
        condition=".Values.crds.install",
        edits=(
            Edit(
                "  name: upgradeplans.management.harvesterhci.io\n",
                "  name: upgradeplans.management.harvesterhci.io\n"
                "  labels:\n"
                '    {{- include "harvester-upgrade-manager.labels" . | nindent 4 }}\n'
                "  {{- if .Values.crds.keep }}\n"
                "  annotations:\n"
                "    helm.sh/resource-policy: keep\n"
                "  {{- end }}\n",
            ),
        ),
    ),
    *(
        Template(source=f"rbac/{name}.yaml")
        for name in (
            "service-account",
            "harvester-system",
            "other-namespaces",
            "metrics-reader",
            "preflight",
        )
    ),
    Template(
        source="rbac/upgradeplan-roles.yaml",
        edits=(
            _aggregated("operator", to="edit"),
            _aggregated("editor", to="edit"),
            _aggregated("admin", to="admin"),
        ),
    ),
    Template(source="admission-policies/upgradeplans.yaml", condition=_POLICIES),
    Template(
        source="rbac/cluster.yaml",
        edits=(
            when(
                f"not {VIA_PROXY}",
                "    resources: [nodes/stats, nodes/configz]\n",
                otherwise="    # Also the right to run commands in every Pod: kubelets.viaProxy.\n"
                "    resources: [nodes/proxy]\n",
            ),
        ),
    ),
    Template(
        source="rbac/webhook.yaml",
        condition=WEBHOOK,
        every=(_WEBHOOK_ACCOUNT,),
    ),
    Template(source="rbac/webhook-certificates.yaml", condition=_SELF_MADE, every=(_WEBHOOK_ACCOUNT,)),
    Template(source="manager/deployment.yaml", edits=MANAGER),
    Template(source="manager/metrics-service.yaml"),
    Template(
        source="manager/pod-disruption-budget.yaml",
        condition=f"{_BUDGET}.enabled",
        edits=_DISRUPTIONS,
    ),
    Template(source="webhook/service-account.yaml", condition=SEPARATE),
    Template(source="webhook/deployment.yaml", condition=SEPARATE, edits=WEBHOOK_SERVER),
    Template(source="webhook/metrics-service.yaml", condition=SEPARATE),
    Template(
        source="webhook/pod-disruption-budget.yaml",
        condition=f"and {SEPARATE} {_BUDGET}.enabled",
        edits=_DISRUPTIONS,
    ),
    Template(source="webhook/certificate.yaml", condition=_SELF_MADE),
    Template(
        source="webhook/webhook.yaml",
        condition=WEBHOOK,
        edits=(
            when(
                SEPARATE,
                "    app.kubernetes.io/name: harvester-upgrade-manager-webhook\n",
                otherwise="    app.kubernetes.io/name: harvester-upgrade-manager\n",
            ),
            _injected("ValidatingWebhookConfiguration"),
        ),
    ),
    Template(
        source="webhook/mutating.yaml",
        condition=WEBHOOK,
        edits=(_injected("MutatingWebhookConfiguration"),),
    ),
    Template(
        source="webhook/upgrades.yaml",
        condition=WEBHOOK,
        edits=(_injected("ValidatingWebhookConfiguration"),),
    ),
    *(
        Template(source=f"admission-policies/{name}.yaml", condition=_POLICIES, edits=edits)
        for name, edits in _POLICY_EDITS.items()
    ),
    Template(source="certmanager/issuer.yaml", condition=f"and {CERT_MANAGER} (not {_ISSUER})"),
    Template(
        source="certmanager/certificate.yaml",
        condition=CERT_MANAGER,
        edits=(
            Edit(
                "    kind: Issuer\n    name: harvester-upgrade-manager\n",
                f"    {{{{- with {_ISSUER} }}}}\n"
                "    {{- toYaml . | nindent 4 }}\n"
                "    {{- else }}\n"
                "    kind: Issuer\n    name: harvester-upgrade-manager\n"
                "    {{- end }}\n",
            ),
        ),
    ),
    Template(
        source="prometheus/service-monitor.yaml",
        condition=".Values.serviceMonitor.enabled",
        edits=(
            Edit("interval: 30s", "interval: {{ .Values.serviceMonitor.interval }}"),
            after(
                "  namespace: harvester-system\n  labels:\n    app.kubernetes.io/name: harvester-upgrade-manager\n",
                "    {{- with .Values.serviceMonitor.labels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\n",
            ),
        ),
    ),
    Template(
        source="prometheus/prometheus-rule.yaml",
        condition=".Values.prometheusRule.enabled",
        has_templates=True,
        edits=(
            after(
                "  namespace: harvester-system\n  labels:\n    app.kubernetes.io/name: harvester-upgrade-manager\n",
                "    {{- with .Values.prometheusRule.labels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\n",
            ),
            *(
                Edit(f"{_RUNBOOKS}/{name}.md\n", f"{{{{ .Values.prometheusRule.runbookURL }}}}/{name}.md\n")
                for name in _ALERTS
            ),
            Edit(
                "        # The last parts are exported by the API servers",
                f"        {{{{- if {WEBHOOK} }}}}\n        # The last parts are exported by the API servers",
            ),
            after("runbookURL }}/WebhookCertificateExpires.md\n", "        {{- end }}\n"),
        ),
    ),
    Template(
        source="prometheus/metrics-reader.yaml",
        condition=".Values.serviceMonitor.enabled",
        edits=(
            Edit(
                "    name: rancher-monitoring-prometheus\n    namespace: cattle-monitoring-system\n",
                "    name: {{ .Values.serviceMonitor.serviceAccount.name }}\n"
                "    namespace: {{ .Values.serviceMonitor.serviceAccount.namespace }}\n",
            ),
        ),
    ),
    Template(
        source="network-policy/network-policy.yaml",
        condition=".Values.networkPolicy.enabled",
        edits=(_SCRAPERS, after("        - port: 80\n", _EGRESS_PORTS)),
    ),
    Template(
        source="network-policy/webhook.yaml",
        condition=f"and {WEBHOOK} .Values.networkPolicy.enabled",
        edits=(
            after(
                "    - ports:\n        - port: webhook\n",
                "      {{- with .Values.networkPolicy.apiServers }}\n"
                "      from:\n"
                "        {{- range . }}\n"
                "        - ipBlock:\n"
                "            cidr: {{ . }}\n"
                "        {{- end }}\n"
                "      {{- end }}\n",
            ),
            _SCRAPERS,
            after("        - port: 6443\n", _EGRESS_PORTS),
        ),
    ),
    Template(source="flow-schema/flow-schema.yaml", condition=".Values.flowSchema.enabled"),
)
