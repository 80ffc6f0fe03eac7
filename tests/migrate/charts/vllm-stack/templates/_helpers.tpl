{{- define "stack.resources" -}}
{{- $model := . -}}
requests:
  cpu: {{ $model.requestCPU | quote }}
  memory: {{ $model.requestMemory | quote }}
  {{- if gt (int $model.requestGPU) 0 }}
  {{- $type := default "nvidia.com/gpu" $model.requestGPUType }}
  {{ $type }}: {{ $model.requestGPU | quote }}
  {{- end }}
{{- if gt (int $model.requestGPU) 0 }}
limits:
  {{- $type := default "nvidia.com/gpu" $model.requestGPUType }}
  {{ $type }}: {{ $model.requestGPU | quote }}
{{- end }}
{{- end }}
