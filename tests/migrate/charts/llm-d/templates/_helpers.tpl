{{- define "llmd.resources" -}}
{{- $limits := dict "memory" "32Gi" -}}
{{- if not .Values.dra.enabled -}}
{{- $_ := set $limits "nvidia.com/gpu" (toString .Values.tensor) -}}
{{- end -}}
resources:
  limits:
    {{- toYaml $limits | nindent 4 }}
  {{- if .Values.dra.enabled }}
  claims:
  - name: gpu
    request: gpu
  {{- end }}
{{- end }}
