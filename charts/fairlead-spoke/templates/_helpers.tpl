{{/* One agent a cluster: its names are fixed, since roles, policies and the command line know them. */}}
{{- define "fairlead-spoke.namespace" -}}
{{- if ne .Release.Namespace "fairlead-system" -}}
{{- fail (printf "install into the namespace fairlead-system, not %s: roles, policies and kubectl fairlead know it by that name" .Release.Namespace) -}}
{{- end -}}
fairlead-system
{{- end -}}

{{- define "fairlead-spoke.labels" -}}
app.kubernetes.io/name: fairlead-spoke
app.kubernetes.io/instance: {{ .Release.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/part-of: fairlead
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "fairlead-spoke.selector" -}}
app.kubernetes.io/name: fairlead-spoke
{{- end -}}

{{- define "fairlead-spoke.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ $tag }}
{{- end -}}
{{- end -}}

