"""The edits of both Deployments: the manager's, and the webhook's. hack/chart/catalogue.py lists their templates."""

from __future__ import annotations

from hack.chart.template import Edit, after, when

WEBHOOK = ".Values.webhook.enabled"
SEPARATE = f"(and {WEBHOOK} .Values.webhook.separate)"
IN_MANAGER = f"(and {WEBHOOK} (not .Values.webhook.separate))"
CERT_MANAGER = f'(and {WEBHOOK} (eq .Values.webhook.certificates "cert-manager"))'
VIA_PROXY = ".Values.kubelets.viaProxy"
_CERT_MANAGER_IN_MANAGER = f'(and {IN_MANAGER} (eq .Values.webhook.certificates "cert-manager"))'

#: The fields of both Deployments' Pods that the values set.
_PLACEMENT = (
    after(
        "      enableServiceLinks: false\n",
        "      {{- if kindIs `bool` .Values.hostUsers }}\n"
        "      hostUsers: {{ .Values.hostUsers }}\n"
        "      {{- end }}\n"
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
    Edit("--log-level=info", "--log-level={{ .Values.log.level }}"),
)


def _own(values: str, *, certificates: str, variables: str) -> tuple[Edit, ...]:
    """Return the edits by the values of one Deployment, whose variables end with that text.

    The certificate of cert-manager is mounted if the expression is true.
    """
    return (
        Edit(
            "            - --log-format=auto\n",
            "            - --log-format={{ .Values.log.format }}\n"
            f"            {{{{- if {certificates} }}}}\n"
            "            - --webhook-cert-path=/certificates\n"
            "            {{- end }}\n"
            '            {{- with include "harvester-upgrade-manager.toolkit-args" . }}\n'
            "            {{- . | nindent 12 }}\n"
            "            {{- end }}\n"
            f"            {{{{- with {values}.extraArgs }}}}\n"
            "            {{- toYaml . | nindent 12 }}\n"
            "            {{- end }}\n",
        ),
        after(
            variables,
            f"            {{{{- with {values}.env }}}}\n"
            "            {{- toYaml . | nindent 12 }}\n"
            "            {{- end }}\n",
        ),
        Edit(
            "            requests:\n              cpu: 50m\n              memory: 64Mi\n"
            "            limits:\n              memory: 256Mi\n",
            f"            {{{{- toYaml {values}.resources | nindent 12 }}}}\n",
        ),
        *_certificates(certificates),
    )


def _certificates(condition: str) -> tuple[Edit, ...]:
    """Return the edits that mount the Secret of cert-manager."""
    return (
        after(
            "              mountPath: /tmp\n",
            f"            {{{{- if {condition} }}}}\n"
            "            - name: certificates\n"
            "              mountPath: /certificates\n"
            "              readOnly: true\n"
            "            {{- end }}\n",
        ),
        after(
            "            sizeLimit: 16Mi\n",
            f"        {{{{- if {condition} }}}}\n"
            "        - name: certificates\n"
            "          secret:\n"
            "            secretName: harvester-upgrade-manager-webhook-tls\n"
            "        {{- end }}\n",
        ),
    )


_SERVES = "management.harvesterhci.io/serves: webhook\n"

MANAGER = (
    after(
        "  namespace: harvester-system\n  labels:\n    app.kubernetes.io/name: harvester-upgrade-manager\n",
        f"    {{{{- if {IN_MANAGER} }}}}\n    {_SERVES}    {{{{- end }}}}\n",
    ),
    after(
        "    metadata:\n      labels:\n        app.kubernetes.io/name: harvester-upgrade-manager\n",
        f"        {{{{- if {IN_MANAGER} }}}}\n        {_SERVES}        {{{{- end }}}}\n",
    ),
    Edit("replicas: 2", "replicas: {{ .Values.replicas }}"),
    when(
        ".Values.leaderElection.enabled",
        "    type: RollingUpdate\n    rollingUpdate:\n      maxSurge: 1\n      maxUnavailable: 0\n",
        otherwise="    # Two Pods would both upgrade the cluster.\n    type: Recreate\n",
    ),
    *_PLACEMENT,
    when(".Values.leaderElection.enabled", "            - --leader-elect\n"),
    when(
        f"not {IN_MANAGER}",
        "            - --webhook-bind-address=0\n",
        otherwise="            - --webhook-bind-address=:9443\n",
    ),
    Edit(
        "            - --log-level={{ .Values.log.level }}\n",
        f"            {{{{- if {VIA_PROXY} }}}}\n"
        "            - --kubelet-access=proxy\n"
        "            {{- end }}\n"
        "            - --log-level={{ .Values.log.level }}\n",
    ),
    Edit('              value: "false"\n', f"              value: {{{{ {IN_MANAGER} | quote }}}}\n"),
    *_own(
        ".Values",
        certificates=_CERT_MANAGER_IN_MANAGER,
        variables=f"              value: {{{{ {IN_MANAGER} | quote }}}}\n",
    ),
    after(
        "            - name: probes\n              containerPort: 8081\n",
        f"            {{{{- if {IN_MANAGER} }}}}\n"
        "            - name: webhook\n"
        "              containerPort: 9443\n"
        "          # Until no API server sends requests to the webhook of this Pod any more.\n"
        "          lifecycle:\n"
        "            preStop:\n"
        "              sleep:\n"
        "                seconds: 5\n"
        "            {{- end }}\n",
    ),
)

WEBHOOK_SERVER = (
    Edit("replicas: 2", "replicas: {{ .Values.webhook.replicas }}"),
    *_PLACEMENT,
    *_own(
        ".Values.webhook",
        certificates=CERT_MANAGER,
        variables="                  fieldPath: metadata.namespace\n",
    ),
)
