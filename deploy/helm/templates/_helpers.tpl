{{/* Metadata of an object: (list . NAME). */}}
{{- define "postrider.metadata" -}}
{{- $root := index . 0 -}}
metadata:
  name: {{ index . 1 }}
  namespace: {{ $root.Release.Namespace }}
  labels: {app.kubernetes.io/name: postrider}
{{- end }}

{{/* The settings as a ConfigMap has them: the lines NAME=value of settings.env, and the files of the secrets. */}}
{{- define "postrider.settings" -}}
{{- range regexFindAll "(?m)^[A-Z][A-Z0-9_]*=.*$" .Values.settings -1 }}
{{- $parts := splitn "=" 2 (trimSuffix "\r" .) }}
{{ $parts._0 }}: {{ $parts._1 | quote }}
{{- end }}
{{- range $name, $value := .Values.secrets }}
{{ $name }}_FILE: /run/secrets/postrider/{{ $name }}
{{- end }}
{{- end }}

{{- define "postrider.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Common to all containers. */}}
{{- define "postrider.container" -}}
image: {{ include "postrider.image" . }}
envFrom:
  - configMapRef: {name: postrider}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "postrider.mounts" -}}
- {name: secrets, mountPath: /run/secrets/postrider, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{/* Metadata of a pod: (list . COMPONENT), an empty one for the migration. Changed settings replace the pods. */}}
{{- define "postrider.podMetadata" -}}
{{- $root := index . 0 -}}
metadata:
  labels:
    app.kubernetes.io/name: postrider
    {{- with index . 1 }}
    app.kubernetes.io/component: {{ . }}
    {{- end }}
  annotations:
    checksum/settings: {{ list (include "postrider.settings" $root) $root.Values.secrets | toJson | sha256sum }}
{{- end }}

{{/* Common to the pods of all processes, including the migration. */}}
{{- define "postrider.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  # The group that may read the secrets.
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "postrider.volumes" -}}
- name: secrets
  secret: {secretName: postrider, defaultMode: 0440}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 64Mi}
{{- end }}

{{/* Common to the pods of all deployments: they start when the database has the tables of this version. */}}
{{- define "postrider.waiting" -}}
initContainers:
  - name: wait-for-migrations
    args: [manage, migrate, --check]
    {{- include "postrider.container" . | nindent 4 }}
    volumeMounts:
      {{- include "postrider.mounts" . | nindent 6 }}
# Not all pods of a process on one node.
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
{{- end }}

{{/* The head of a deployment up to its pod's own part: (list . NAME). */}}
{{- define "postrider.deployment" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
apiVersion: apps/v1
kind: Deployment
{{ include "postrider.metadata" . }}
spec:
  {{- if not (and $root.Values.autoscaling.enabled (hasKey $root.Values.autoscaling $name)) }}
  replicas: {{ get $root.Values.replicas $name | default 1 }}
  {{- end }}
  selector:
    matchLabels: {app.kubernetes.io/component: {{ $name }}}
  {{- if eq $name "web" }}
  strategy:
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  {{- end }}
{{- end }}
