package conform

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// platformManifests are the clauses of section 9, with 5.1, 7.1 and 7.2.
func platformManifests() []Clause {
	return []Clause{
		platformClause("manifests", "9.1", Must, "k8s/configmap.yaml and k8s/deployment.yaml are there, with a Service", local(func(f *folder) finding {
			switch {
			case !f.has("k8s/configmap.yaml"):
				return fail("expected k8s/configmap.yaml")
			case f.broken != nil:
				return fail("%v", f.broken)
			case f.service == nil:
				return fail("expected a Service in k8s/deployment.yaml or k8s/service.yaml")
			}
			return pass()
		})),
		platformClause("namespace", "9.2", Must, "the namespace is agents, or the one that service.namespace names", manifest(func(_ *folder, w *workload, c *container) finding {
			if ns := w.Metadata.Namespace; ns == "" || ns != "agents" && ns != attributes(c)["service.namespace"] {
				return fail("got the namespace %q", ns)
			}
			return pass()
		})),
		platformClause("service-account", "9.3", Must, "the ServiceAccount is agents-sa", manifest(func(_ *folder, w *workload, _ *container) finding {
			if got := w.Spec.Template.Spec.ServiceAccountName; got != "agents-sa" {
				return fail("got %q", got)
			}
			return pass()
		})),
		platformClause("secrets-mount", "9.4", Must, "the SecretProviderClass agents-kv-spc is mounted at /mnt/secrets-store", manifest(secretsMount)),
		platformClause("secrets", "9.4", Must, "secrets come by secretKeyRef from agents-kv-sync", manifest(secretRefs)),
		platformClause("probes", "9.5", Must, "liveness and readiness ask GET /health on the port http", manifest(func(_ *folder, _ *workload, c *container) finding {
			for i, p := range []*probe{c.LivenessProbe, c.ReadinessProbe} {
				name := []string{"livenessProbe", "readinessProbe"}[i]
				if p == nil || p.HTTPGet.Path != "/health" || p.HTTPGet.Port != "http" {
					return fail("%s: expected httpGet of /health on the port http", name)
				}
			}
			return pass()
		})),
		platformClause("probe-times", "9.5", Should, "liveness begins after 20 s and asks each 15 s, readiness after 10 s and each 10 s", manifest(func(_ *folder, _ *workload, c *container) finding {
			l, r := c.LivenessProbe, c.ReadinessProbe
			if l == nil || r == nil {
				return skip("a probe is missing")
			}
			if l.InitialDelaySeconds != 20 || l.PeriodSeconds != 15 || r.InitialDelaySeconds != 10 || r.PeriodSeconds != 10 {
				return fail("got %d/%d and %d/%d", l.InitialDelaySeconds, l.PeriodSeconds, r.InitialDelaySeconds, r.PeriodSeconds)
			}
			return pass()
		})),
		platformClause("service", "9.7", Must, "the Service has port 80 to http and is ClusterIP", local(func(f *folder) finding {
			if f.service == nil {
				return skip("there is no Service to read")
			}
			spec := f.service.Spec
			if spec.Type != "" && spec.Type != "ClusterIP" || len(spec.Ports) != 1 || spec.Ports[0].Port != 80 || spec.Ports[0].TargetPort != "http" {
				return fail("got %+v", spec)
			}
			if f.deployment != nil {
				for k, v := range spec.Selector {
					if f.deployment.Spec.Template.Metadata.Labels[k] != v {
						return fail("it selects %s=%s, which the pod does not carry", k, v)
					}
				}
			}
			return pass()
		})),
		platformClause("resources", "9.8", Must, "requests and limits are declared", manifest(func(_ *folder, _ *workload, c *container) finding {
			for i, list := range []map[string]any{c.Resources.Requests, c.Resources.Limits} {
				name := []string{"requests", "limits"}[i]
				if list["cpu"] == nil || list["memory"] == nil {
					return fail("expected %s of cpu and memory, got %v", name, list)
				}
			}
			return pass()
		})),
		platformClause("registry-variables", "5.1", Must, "REGISTRY_URL and AGENT_SELF_URL are set", manifest(func(_ *folder, _ *workload, c *container) finding {
			for _, name := range []string{"REGISTRY_URL", "AGENT_SELF_URL"} {
				if u, err := url.Parse(c.env(name)); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
					return fail("%s: expected an address, got %q", name, c.env(name))
				}
			}
			return pass()
		})),
		platformClause("self-url", "5", Must, "AGENT_SELF_URL is the Service's name in the cluster", manifest(func(f *folder, w *workload, c *container) finding {
			u, err := url.Parse(c.env("AGENT_SELF_URL"))
			if err != nil || f.service == nil || u.Host == "" {
				return skip("there is no Service or no AGENT_SELF_URL to compare")
			}
			name := f.service.Metadata.Name + "." + w.Metadata.Namespace
			if h := u.Hostname(); h != name && h != name+".svc" && h != name+".svc.cluster.local" {
				return fail("expected %s.svc.cluster.local, got %q", name, h)
			}
			return pass()
		})),
		platformClause("inject", "7.1", Must, "the pod carries the annotations that inject telemetry into its container", manifest(inject)),
		platformClause("telemetry-variables", "7.2", Must, "the six OpenTelemetry variables are set as the platform wants them", manifest(telemetryVariables)),
		platformClause("telemetry-namespace", "7.2", Must, "service.namespace is the pod's namespace", manifest(func(_ *folder, w *workload, c *container) finding {
			if got := attributes(c)["service.namespace"]; got != w.Metadata.Namespace {
				return fail("expected %q, got %q", w.Metadata.Namespace, got)
			}
			return pass()
		})),
		platformClause("telemetry-version", "7.2", Must, "service.version is .image-version's", manifest(func(f *folder, _ *workload, c *container) finding {
			if f.version == "" {
				return skip("there is no version to compare with (10.1)")
			}
			if got := attributes(c)["service.version"]; got != f.version {
				return fail("expected %q, got %q", f.version, got)
			}
			return pass()
		})),
		platformClause("telemetry-type", "7.2", Must, "agent.type is lower case with hyphens", manifest(func(_ *folder, _ *workload, c *container) finding {
			if got := attributes(c)["agent.type"]; !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(got) {
				return fail("got %q", got)
			}
			return pass()
		})),
	}
}

// attributes are OTEL_RESOURCE_ATTRIBUTES.
func attributes(c *container) map[string]string {
	out := map[string]string{}
	for pair := range strings.SplitSeq(c.env("OTEL_RESOURCE_ATTRIBUTES"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		out[name] = value
	}
	return out
}

func secretsMount(_ *folder, w *workload, c *container) finding {
	for _, m := range c.VolumeMounts {
		if m.MountPath != "/mnt/secrets-store" {
			continue
		}
		for _, v := range w.Spec.Template.Spec.Volumes {
			if v.Name == m.Name && v.CSI.VolumeAttributes["secretProviderClass"] == "agents-kv-spc" {
				return pass()
			}
		}
		return fail("the volume %s is not of agents-kv-spc", m.Name)
	}
	return fail("nothing is mounted at /mnt/secrets-store")
}

func secretRefs(_ *folder, _ *workload, c *container) finding {
	for _, v := range c.Env {
		ref := v.ValueFrom.SecretKeyRef
		if ref != nil && ref.Name != "agents-kv-sync" {
			return fail("%s comes from the secret %q", v.Name, ref.Name)
		}
		if secretName.MatchString(v.Name) && ref == nil {
			return fail("%s is no secretKeyRef", v.Name)
		}
	}
	return pass()
}

func inject(f *folder, w *workload, c *container) finding {
	const prefix = "instrumentation.opentelemetry.io/"
	a := w.Spec.Template.Metadata.Annotations
	want := []string{"inject-sdk"}
	if f.language == python {
		want = []string{"inject-python"}
	}
	if !slices.ContainsFunc(want, func(name string) bool { return a[prefix+name] == "monitoring/otel-instrumentation" }) {
		return fail("expected %s%s: monitoring/otel-instrumentation", prefix, want[0])
	}
	if got := a[prefix+"container-names"]; got != c.Name {
		return fail("container-names is %q, the container %q", got, c.Name)
	}
	return pass()
}

func telemetryVariables(_ *folder, w *workload, c *container) finding {
	for _, v := range []struct{ name, want string }{
		{"OTEL_SERVICE_NAME", w.Metadata.Name}, {"OTEL_LOGS_EXPORTER", "otlp"}, {"OTEL_METRICS_EXPORTER", "otlp"},
		{"OTEL_METRIC_EXPORT_INTERVAL", "15000"}, {"OTEL_SEMCONV_STABILITY_OPT_IN", "http"},
	} {
		if got := c.env(v.name); got != v.want {
			return fail("%s: expected %q, got %q", v.name, v.want, got)
		}
	}
	for _, name := range []string{"service.namespace", "service.version", "deployment.environment", "agent.type"} {
		if attributes(c)[name] == "" {
			return fail("OTEL_RESOURCE_ATTRIBUTES: expected %s", name)
		}
	}
	return pass()
}
