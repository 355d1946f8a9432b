{{- define "harvester-upgrade-manager.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "harvester-upgrade-manager.image" -}}
{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}
{{- else }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- define "harvester-upgrade-manager.toolkit-repository" -}}
{{ .Values.toolkit.image.repository | default "rancher/harvester-upgrade-toolkit" }}
{{- end }}

{{- /* The manager's flags about the toolkit image; empty for the defaults of the manager. */ -}}
{{- define "harvester-upgrade-manager.toolkit-args" -}}
{{- $toolkit := .Values.toolkit }}
{{- $args := list }}
{{- if ne $toolkit.kind "harvester" }}
{{- $args = append $args (printf "--toolkit-kind=%s" $toolkit.kind) }}
{{- end }}
{{- if or $toolkit.image.repository $toolkit.image.digest }}
{{- $image := list (include "harvester-upgrade-manager.toolkit-repository" .) $toolkit.image.digest | compact | join "@" }}
{{- $args = append $args (printf "--toolkit-image=%s" $image) }}
{{- end }}
{{- with $toolkit.image.tag | default (eq $toolkit.kind "own" | ternary (printf "v%s" .Chart.AppVersion) "") }}
{{- $args = append $args (printf "--toolkit-tag=%s" .) }}
{{- end }}
{{- range $toolkit.imagePrefixes }}
{{- $args = append $args (printf "--toolkit-image-prefix=%s" .) }}
{{- end }}
{{- with $args }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- /* "true" unless the server has no ValidatingAdmissionPolicies. Without a server, Helm knows no kinds, and the chart's kubeVersion has them. */ -}}
{{- define "harvester-upgrade-manager.admissionPolicies" -}}
{{- $kinds := .Capabilities.APIVersions -}}
{{- if and .Values.admissionPolicies.enabled (or ($kinds.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy") (not ($kinds.Has "v1/Pod"))) -}}
true
{{- end }}
{{- end }}

{{- /* As a list of CEL, which JSON is, too. */ -}}
{{- define "harvester-upgrade-manager.imagePrefixes" -}}
{{- $repository := include "harvester-upgrade-manager.toolkit-repository" . -}}
{{- .Values.toolkit.imagePrefixes | default (list $repository "rancher/harvester-upgrade-toolkit" | uniq) | toJson -}}
{{- end }}

{{- /* A variable of the manager's container: context, name and default. */ -}}
{{- define "harvester-upgrade-manager.variable" -}}
{{- $value := last . -}}
{{- $name := index . 1 -}}
{{- range (first .).Values.env }}
{{- if eq .name $name }}{{ $value = .value }}{{ end }}
{{- end }}
{{- $value -}}
{{- end }}
