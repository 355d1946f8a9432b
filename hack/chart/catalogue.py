"""The table of the chart's generated templates: what of each manifest the values change."""

from __future__ import annotations

from hack.chart.template import Edit, Template, after, when

_WEBHOOK = ".Values.webhook.enabled"
_CERT_MANAGER = f'(and {_WEBHOOK} (eq .Values.webhook.certificates "cert-manager"))'
_SELF_MADE = f'(and {_WEBHOOK} (eq .Values.webhook.certificates "self-made"))'
_ISSUER = ".Values.webhook.certManager.issuerRef"

#: The value that replaces the start of the alerts' runbook_url.
_RUNBOOKS = "https://github.com/harvester/harvester-upgrade-manager/blob/main/docs/runbooks"
_ALERTS = ("UpgradeFailed", "UpgradeStalled", "UpgradeDegraded", "ManagerDown", "WebhookDown")

_DEPLOYMENT = (
    Edit("replicas: 2", "replicas: {{ .Values.replicas }}"),
    when(
        ".Values.leaderElection.enabled",
        "    type: RollingUpdate\n    rollingUpdate:\n      maxSurge: 1\n      maxUnavailable: 0\n",
        otherwise="    # Two Pods would both upgrade the cluster.\n    type: Recreate\n",
    ),
    after(
        "      serviceAccountName: harvester-upgrade-manager\n",
        "      {{- with .Values.image.pullSecrets }}\n"
        "      imagePullSecrets:\n"
        "        {{- toYaml . | nindent 8 }}\n"
        "      {{- end }}\n",
    ),
    Edit(
        "      priorityClassName: system-cluster-critical\n",
        "      {{- with .Values.priorityClassName }}\n      priorityClassName: {{ . }}\n      {{- end }}\n",
    ),
    Edit(
        "      affinity:\n",
        "      {{- with .Values.nodeSelector }}\n"
        "      nodeSelector:\n"
        "        {{- toYaml . | nindent 8 }}\n"
        "      {{- end }}\n"
        "      affinity:\n"
        "        {{- with omit .Values.affinity `nodeAffinity` }}\n"
        "        {{- toYaml . | nindent 8 }}\n"
        "        {{- end }}\n",
    ),
    Edit(
        "        nodeAffinity:\n",
        "        nodeAffinity:\n"
        "          {{- if .Values.affinity.nodeAffinity }}\n"
        "          {{- toYaml .Values.affinity.nodeAffinity | nindent 10 }}\n"
        "          {{- else }}\n",
    ),
    after(
        "                  - key: node-role.kubernetes.io/control-plane\n                    operator: Exists\n",
        "          {{- end }}\n",
    ),
    after(
        "        - key: node.kubernetes.io/unschedulable\n          operator: Exists\n          effect: NoSchedule\n",
        "        {{- with .Values.tolerations }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n",
    ),
    Edit(
        "          image: harvester-upgrade-manager\n",
        '          image: {{ include "harvester-upgrade-manager.image" . }}\n'
        "          {{- with .Values.image.pullPolicy }}\n"
        "          imagePullPolicy: {{ . }}\n"
        "          {{- end }}\n",
    ),
    when(".Values.leaderElection.enabled", "            - --leader-elect\n"),
    when(
        _WEBHOOK,
        "            - --webhook-bind-address=:9443\n",
        otherwise="            - --webhook-bind-address=0\n",
    ),
    Edit("--log-level=info", "--log-level={{ .Values.log.level }}"),
    Edit(
        "            - --log-format=auto\n",
        "            - --log-format={{ .Values.log.format }}\n"
        f"            {{{{- if {_CERT_MANAGER} }}}}\n"
        "            - --webhook-cert-path=/certificates\n"
        "            {{- end }}\n"
        "            {{- with .Values.extraArgs }}\n"
        "            {{- toYaml . | nindent 12 }}\n"
        "            {{- end }}\n",
    ),
    Edit(
        '              value: "true"\n',
        f"              value: {{{{ {_WEBHOOK} | quote }}}}\n"
        "            {{- with .Values.env }}\n"
        "            {{- toYaml . | nindent 12 }}\n"
        "            {{- end }}\n",
    ),
    when(_WEBHOOK, "            - name: webhook\n              containerPort: 9443\n"),
    Edit(
        "            requests:\n              cpu: 50m\n              memory: 64Mi\n"
        "            limits:\n              memory: 256Mi\n",
        "            {{- toYaml .Values.resources | nindent 12 }}\n",
    ),
    after(
        "              mountPath: /tmp\n",
        f"            {{{{- if {_CERT_MANAGER} }}}}\n"
        "            - name: certificates\n"
        "              mountPath: /certificates\n"
        "              readOnly: true\n"
        "            {{- end }}\n",
    ),
    after(
        "            sizeLimit: 16Mi\n",
        f"        {{{{- if {_CERT_MANAGER} }}}}\n"
        "        - name: certificates\n"
        "          secret:\n"
        "            secretName: harvester-upgrade-manager-webhook-tls\n"
        "        {{- end }}\n",
    ),
)

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
            "cluster",
            "harvester-system",
            "other-namespaces",
            "metrics-reader",
            "upgradeplan-roles",
        )
    ),
    Template(source="rbac/webhook.yaml", condition=_WEBHOOK),
    Template(source="manager/deployment.yaml", edits=_DEPLOYMENT),
    Template(source="manager/metrics-service.yaml"),
    Template(
        source="manager/pod-disruption-budget.yaml",
        condition=".Values.podDisruptionBudget.enabled",
        edits=(Edit("maxUnavailable: 1", "maxUnavailable: {{ .Values.podDisruptionBudget.maxUnavailable }}"),),
    ),
    Template(source="webhook/certificate.yaml", condition=_SELF_MADE),
    Template(
        source="webhook/webhook.yaml",
        condition=_WEBHOOK,
        edits=(
            after(
                "kind: ValidatingWebhookConfiguration\nmetadata:\n",
                f"  {{{{- if {_CERT_MANAGER} }}}}\n"
                "  annotations:\n"
                "    cert-manager.io/inject-ca-from: harvester-system/harvester-upgrade-manager-webhook\n"
                "  {{- end }}\n",
            ),
        ),
    ),
    Template(source="certmanager/issuer.yaml", condition=f"and {_CERT_MANAGER} (not {_ISSUER})"),
    Template(
        source="certmanager/certificate.yaml",
        condition=_CERT_MANAGER,
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
                f"        {{{{- if {_WEBHOOK} }}}}\n        # The last parts are exported by the API servers",
            ),
            after("runbookURL }}/WebhookDown.md\n", "        {{- end }}\n"),
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
        edits=(
            Edit(
                "    - ports:\n        - port: webhook\n",
                f"    {{{{- if {_WEBHOOK} }}}}\n"
                "    - ports:\n        - port: webhook\n"
                "      {{- with .Values.networkPolicy.apiServers }}\n"
                "      from:\n"
                "        {{- range . }}\n"
                "        - ipBlock:\n"
                "            cidr: {{ . }}\n"
                "        {{- end }}\n"
                "      {{- end }}\n"
                "    {{- end }}\n",
            ),
            Edit(
                "cattle-monitoring-system\n",
                "{{ .Values.serviceMonitor.serviceAccount.namespace }}\n",
            ),
        ),
    ),
)
