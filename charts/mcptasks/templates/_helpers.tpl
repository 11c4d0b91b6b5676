{{/* The begin of every name. 50 characters leave room for what a Service's name may have, 63. */}}
{{- define "mcptasks.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- .Values.fullnameOverride | default $full | replace "." "-" | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* The name of an object outside any namespace, from (list $ COMPONENT). A namespace has no dot: no two releases share it. */}}
{{- define "mcptasks.clusterName" -}}
{{- $root := index . 0 }}
{{- /* `helm lint` as a library has no namespace. */}}
{{- printf "%s-%s.%s" (include "mcptasks.fullname" $root) (index . 1) ($root.Release.Namespace | default "default") }}
{{- end }}

{{/* What marks the pods of a component for good, from (list $ COMPONENT). */}}
{{- define "mcptasks.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Values.nameOverride | default $root.Chart.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* The labels of an object, from (list $ COMPONENT). */}}
{{- define "mcptasks.labels" -}}
{{- $root := index . 0 }}
{{- include "mcptasks.selector" . }}
app.kubernetes.io/part-of: mcptasks
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The ServiceAccount of a component, from (list $ COMPONENT). */}}
{{- define "mcptasks.serviceAccount" -}}
{{- $root := index . 0 }}
{{- $account := (index $root.Values (index . 1)).serviceAccount }}
{{- $made := printf "%s-%s" (include "mcptasks.fullname" $root) (index . 1) }}
{{- if not (or $account.name $account.create) }}
{{- fail (printf "%s.serviceAccount: give the name of one, or let it be made (create: true); the namespace's default must not get these rights" (index . 1)) }}
{{- end }}
{{- $account.name | default $made }}
{{- end }}

{{- define "mcptasks.toolServiceAccount" -}}
{{- .Values.tools.serviceAccount.name | default (printf "%s-tool" (include "mcptasks.fullname" .)) }}
{{- end }}

{{- define "mcptasks.image" -}}
{{- with .Values.image }}
{{- if .digest }}
{{- printf "%s@%s" .repository .digest }}
{{- else }}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Namespaces that the operator serves by Roles, as a JSON list; empty in cluster mode. */}}
{{- define "mcptasks.operatorNamespaces" -}}
{{- if eq .Values.scope "cluster" }}
{{- if .Values.operator.namespaces }}
{{- fail "operator.namespaces is for scope: namespaced; with scope: cluster every namespace is served. Unset one of them." }}
{{- end }}
{{- list | toJson }}
{{- else }}
{{- .Values.operator.namespaces | default (list .Release.Namespace) | uniq | toJson }}
{{- end }}
{{- end }}

{{/* Where the pods of tasks find the worker API. */}}
{{- define "mcptasks.workerUrl" -}}
{{- $service := printf "http://%s-service" (include "mcptasks.fullname" .) }}
{{- $served := include "mcptasks.operatorNamespaces" . | fromJsonArray }}
{{- if .Values.operator.workerUrl }}
{{- .Values.operator.workerUrl }}
{{- else if and (eq (len $served) 1) (eq (first $served) .Release.Namespace) }}
{{- printf "%s.%s.svc:%d" $service .Release.Namespace (int .Values.service.port) }}
{{- else }}
{{- /* Each pod asks for the service beside it. */}}
{{- printf "%s:%d" $service (int .Values.service.port) }}
{{- end }}
{{- end }}

{{/* Settings of the operator as a JSON object: variable → text. */}}
{{- define "mcptasks.operatorSettings" -}}
{{- with .Values.operator }}
{{- dict
      "MCPTASKS_NAMESPACES" (include "mcptasks.operatorNamespaces" $ | fromJsonArray | join ",")
      "MCPTASKS_WORKER_URL" (include "mcptasks.workerUrl" $)
      "MCPTASKS_PORT" "8081"
      "MCPTASKS_LEASE_NAME" (printf "%s-operator" (include "mcptasks.fullname" $))
      "MCPTASKS_LEASE_NAMESPACE" $.Release.Namespace
      "MCPTASKS_LEASE_SECONDS" (int64 .lease.seconds | toString)
      "MCPTASKS_RENEW_SECONDS" (toString .lease.renewSeconds)
      "MCPTASKS_WORKERS" (int64 .workers | toString)
      "MCPTASKS_STARTS_PER_SECOND" (toString .startsPerSecond)
      "MCPTASKS_START_BURST" (int64 .startBurst | toString)
      "MCPTASKS_DELETES_PER_SECOND" (toString .deletesPerSecond)
      "MCPTASKS_AUDIT_SECONDS" (toString .auditSeconds)
      "MCPTASKS_PULSE_SECONDS" (toString .pulseSeconds)
      "MCPTASKS_WATCH_LAG_SECONDS" (toString .watchLagSeconds)
    | toJson }}
{{- end }}
{{- end }}

{{/* Settings of the service as a JSON object: variable → text. */}}
{{- define "mcptasks.serviceSettings" -}}
{{- with .Values.service }}
{{- $settings := dict
      "MCPTASKS_NAMESPACE" $.Release.Namespace
      "MCPTASKS_PORT" "8080"
      "MCPTASKS_IDENTITY" .identity
      "MCPTASKS_SESSION_DAYS" (toString .sessionDays)
      "MCPTASKS_BODY_LIMIT" (int64 .bodyLimit | toString)
      "MCPTASKS_PING_SECONDS" (toString .pingSeconds)
      "MCPTASKS_ALLOWED_HOSTS" (toJson .allowedHosts)
      "MCPTASKS_ALLOWED_ORIGINS" (toJson .allowedOrigins)
      "MCPTASKS_CREATIONS" .limits.creations
      "MCPTASKS_POLLS" .limits.polls
      "MCPTASKS_LOOKUPS" .limits.lookups
      "MCPTASKS_OPEN_TASKS" (int64 .limits.openTasks | toString)
      "MCPTASKS_ARGUMENT_LIMIT" (int64 .limits.arguments | toString)
      "MCPTASKS_RESULT_CACHE" (int64 .resultCache | toString)
      "MCPTASKS_PROGRESS_SECONDS" (toString .progressSeconds) }}
{{- if .rateStorage }}
{{- $_ := set $settings "MCPTASKS_RATE_STORAGE" .rateStorage }}
{{- end }}
{{- toJson $settings }}
{{- end }}
{{- end }}

{{/* Environment variables, from (list COMPONENT SETTINGS EXTRA): a name that stands twice is refused here, with what to do. */}}
{{- define "mcptasks.env" -}}
{{- $settings := index . 1 | fromJson }}
{{- range $name, $value := $settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- $component := index . 0 }}
{{- $taken := list "MCPTASKS_REPLICA" "MCPTASKS_SIGNING_KEYS" }}
{{- range index . 2 }}
{{- if or (hasKey $settings .name) (has .name $taken) }}
{{- fail (printf "%s.extraEnv: %s is set by another value of this chart; use that one" $component .name) }}
{{- end }}
{{- $taken = append $taken .name }}
- {{ toYaml . | nindent 2 | trim }}
{{- end }}
{{- end }}

{{/* What Pod Security "restricted" asks of a pod, and what an image without a shell can bear. */}}
{{- define "mcptasks.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "mcptasks.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
privileged: false
readOnlyRootFilesystem: true
{{- end }}

{{/* Where a pod runs, and as what, from (list $ COMPONENT). */}}
{{- define "mcptasks.placement" -}}
{{- $root := index . 0 }}
{{- $selector := include "mcptasks.selector" . }}
{{- with index $root.Values (index . 1) }}
{{- if .priorityClassName }}
priorityClassName: {{ .priorityClassName }}
{{- else if $root.Values.priorityClass.create }}
priorityClassName: {{ include "mcptasks.clusterName" (list $root "priority") }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .topologySpread.enabled }}
topologySpreadConstraints:
  {{- $when := .topologySpread.whenUnsatisfiable }}
  {{- range .topologySpread.keys }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: {{ $when }}
    labelSelector:
      matchLabels:
        {{- $selector | nindent 8 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* A CRD's manifest as it is generated, from (list $ NAME). */}}
{{- define "mcptasks.crd" -}}
{{- $root := index . 0 }}
{{- if $root.Values.crds.enabled }}
{{- $text := $root.Files.Get (printf "files/crds/%s.mcptasks.dev.yaml" (index . 1)) | required "the chart lacks a CRD's manifest: run `make crds`" }}
{{- if $root.Values.crds.keep }}
{{- $text = regexReplaceAll "(?m)^metadata:$" $text "metadata:\n  annotations:\n    helm.sh/resource-policy: keep" }}
{{- end }}
{{- $text }}
{{- end }}
{{- end }}

{{/* Egress that operator and service have in common: names, the API server, and what the values add. */}}
{{- define "mcptasks.egress" -}}
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
- ports:
    {{- range .Values.networkPolicy.apiServerPorts }}
    - port: {{ . }}
      protocol: TCP
    {{- end }}
  {{- with .Values.networkPolicy.apiServerCidrs }}
  to:
    {{- range . }}
    - ipBlock:
        cidr: {{ . }}
    {{- end }}
  {{- end }}
{{- with .Values.networkPolicy.egress }}
{{ toYaml . }}
{{- end }}
{{- end }}
