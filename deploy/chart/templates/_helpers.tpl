{{- define "pillole.labels" -}}
app.kubernetes.io/name: pillole
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "pillole.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Fails the rendering if a pod would be killed before it has drained, or a setting is missing. */}}
{{- define "pillole.check" -}}
{{- $drain := .Values.drain -}}
{{- $sum := add $drain.sleepS $drain.closesS $drain.endS -}}
{{- if ge (int $sum) (int $drain.graceS) -}}
{{- fail (printf "drain: sleepS + closesS + endS is %d s, so graceS must be more than %d, not %d." (int $sum) (int $sum) (int $drain.graceS)) -}}
{{- end -}}
{{- range $name := list "api" "ingest" "stream" "dedicated" -}}
{{- if not (index $.Values.addresses $name) -}}
{{- fail (printf "addresses.%s is required: where customers reach the service." $name) -}}
{{- end -}}
{{- end -}}
{{- if not .Values.engines.kafkaBrokers -}}{{- fail "engines.kafkaBrokers is required, e.g. kafka-1:9092,kafka-2:9092" -}}{{- end -}}
{{- if not .Values.engines.schemaRegistryUrl -}}{{- fail "engines.schemaRegistryUrl is required." -}}{{- end -}}
{{- if and .Values.networkPolicies (not .Values.engines.networks) -}}
{{- fail "engines.networks is required while networkPolicies is true, e.g. [10.0.0.0/16]" -}}
{{- end -}}
{{- $api := .Values.processes.api -}}
{{- $several := or (gt (int $api.replicas) 1) $api.autoscaling.enabled -}}
{{- if and $several (not .Values.exports.claim) -}}
{{- fail "exports.claim is required while the API may have several pods: all of them must see the same files. Name a ReadWriteMany claim, or set processes.api.replicas=1." -}}
{{- end -}}
{{- range $name, $process := .Values.processes -}}
{{- if and $process.autoscaling.enabled (lt (int $process.autoscaling.max) (int $process.autoscaling.min)) -}}
{{- fail (printf "processes.%s.autoscaling: max is below min." $name) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The settings that all processes share. */}}
{{- define "pillole.env" -}}
- { name: KAFKA_BROKERS, value: {{ .Values.engines.kafkaBrokers | quote }} }
- { name: SCHEMA_REGISTRY_URL, value: {{ .Values.engines.schemaRegistryUrl | quote }} }
- { name: KEY_PEPPER_FILE, value: /run/secrets/pillole/pepper }
- { name: METRICS_HOST, value: 0.0.0.0 }
- { name: METRICS_PORT, value: '9464' }
- { name: METRICS_PUBLIC, value: 'yes' }
- { name: PUBLIC_URL, value: {{ .Values.addresses.api | quote }} }
- { name: INGEST_URL, value: {{ .Values.addresses.ingest | quote }} }
- { name: STREAM_URL, value: {{ .Values.addresses.stream | quote }} }
- { name: DEDICATED_URL, value: {{ .Values.addresses.dedicated | quote }} }
- { name: TRUSTED_PROXIES, value: {{ .Values.trustedProxies | quote }} }
{{- with .Values.engines.settings }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "pillole.databaseUrl" -}}
- name: DATABASE_URL
  valueFrom: { secretKeyRef: { name: {{ .root.Values.secrets.databaseUrls }}, key: {{ .role }} } }
{{- end }}

{{- define "pillole.clickhouseUrl" -}}
- name: CLICKHOUSE_URL
  valueFrom: { secretKeyRef: { name: {{ .Values.secrets.clickhouse }}, key: url } }
{{- end }}

{{/* Restrictions of every pod, under the name of its user in the image. */}}
{{- define "pillole.podSecurity" -}}
automountServiceAccountToken: false
# Otherwise a service named ingest would set INGEST_PORT to an address.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65534
  runAsGroup: 65534
  fsGroup: 65534
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "pillole.containerSecurity" -}}
securityContext:
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: tmp, mountPath: /tmp }
  - { name: secrets, mountPath: /run/secrets/pillole, readOnly: true }
{{- end }}

{{- define "pillole.volumes" -}}
volumes:
  - { name: tmp, emptyDir: { medium: Memory, sizeLimit: 64Mi } }
  - name: secrets
    projected:
      defaultMode: 0440
      sources:
        - secret: { name: {{ .Values.secrets.pepper }} }
        - secret: { name: {{ .Values.secrets.generators }} }
        {{- with .Values.secrets.engines }}
        - secret: { name: {{ . }} }
        {{- end }}
{{- end }}

{{/* A start takes up to two minutes; a process that hangs is restarted after 30 s. */}}
{{- define "pillole.probes" -}}
startupProbe:
  httpGet: { path: /health, port: metrics }
  periodSeconds: 2
  failureThreshold: 60
readinessProbe:
  httpGet: { path: /ready, port: metrics }
  periodSeconds: 3
  failureThreshold: 2
livenessProbe:
  httpGet: { path: /health, port: metrics }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
# The pod leaves the balancers while it sleeps and still serves; then it gets SIGTERM.
lifecycle: { preStop: { sleep: { seconds: {{ .Values.drain.sleepS }} } } }
{{- end }}

{{- define "pillole.spread" -}}
topologySpreadConstraints:
  {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "pillole.labels" $ | nindent 8 }}
  {{- end }}
{{- end }}
