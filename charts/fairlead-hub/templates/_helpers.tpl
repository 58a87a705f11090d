{{/* One hub a cluster: its names are fixed, since roles, policies and the command line know them. */}}
{{- define "fairlead-hub.namespace" -}}
{{- if ne .Release.Namespace "fairlead-system" -}}
{{- fail (printf "install into the namespace fairlead-system, not %s: roles, policies and kubectl fairlead know it by that name" .Release.Namespace) -}}
{{- end -}}
fairlead-system
{{- end -}}

{{- define "fairlead-hub.labels" -}}
app.kubernetes.io/name: fairlead-hub
app.kubernetes.io/instance: {{ .Release.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/part-of: fairlead
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "fairlead-hub.selector" -}}
app.kubernetes.io/name: fairlead-hub
{{- end -}}

{{- define "fairlead-hub.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ $tag }}
{{- end -}}
{{- end -}}

{{/* The configuration file: the operator's, and where cert-manager's certificate lies. */}}
{{- define "fairlead-hub.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "apiVersion" "config.kueue.x-k8s.io/v1beta2" -}}
{{- $_ := set $config "kind" "Configuration" -}}
{{- if .Values.certManager.enabled -}}
{{- $_ := set $config "fairlead" (merge (dict "certDir" "/etc/fairlead/tls") (default dict $config.fairlead)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "fairlead-hub.advertise" -}}
{{- $fromConfig := dig "fairlead" "advertise" "" .Values.config -}}
{{- .Values.gateway.advertise | default $fromConfig | required "gateway.advertise is required: how do spokes reach the hub (HOST:PORT)?" -}}
{{- end -}}
