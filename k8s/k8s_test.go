// Package k8s_test holds the manifests against the platform's specification,
// by reading them strictly as the cluster's own types.
package k8s_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"weir/host"
	"weir/host/config"
	"weir/host/plugin/plugintest"
)

var update = flag.Bool("update", false, "write agent.toml into the ConfigMaps")

const (
	name      = "support-tickets-agent"
	namespace = "agents"
)

// documents are the parts of a file.
func documents(t *testing.T, file string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(data, []byte("\n---\n"))
}

// decode reads a document as a type of the cluster and refuses what the type
// does not have.
func decode[T any](t *testing.T, data []byte, apiVersion, kind string) *T {
	t.Helper()
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(data, &head); err != nil || head.APIVersion != apiVersion || head.Kind != kind {
		t.Fatalf("expected %s %s, got %+v, %v", apiVersion, kind, head, err)
	}
	out := new(T)
	if err := yaml.UnmarshalStrict(data, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDecodesStrictly(t *testing.T) {
	for text, good := range map[string]bool{
		"kind: Service\nspec:\n  ports: []\n":            true,
		"kind: Service\nspec:\n  port: 80\n":             false,
		"kind: Service\nspec:\n  ports: []\n  ports: []": false,
	} {
		if err := yaml.UnmarshalStrict([]byte(text), &corev1.Service{}); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func manifests(t *testing.T) (*corev1.ConfigMap, *appsv1.Deployment, *corev1.Service) {
	t.Helper()
	both := documents(t, "deployment.yaml")
	if len(both) != 2 {
		t.Fatalf("expected Deployment and Service, got %d documents", len(both))
	}
	return decode[corev1.ConfigMap](t, documents(t, "configmap.yaml")[0], "v1", "ConfigMap"),
		decode[appsv1.Deployment](t, both[0], "apps/v1", "Deployment"), decode[corev1.Service](t, both[1], "v1", "Service")
}

// platform.md 9, clause by clause, with 5, 7.1, 7.2 and 8.
func TestManifests(t *testing.T) {
	cm, d, s := manifests(t)
	pod := d.Spec.Template.Spec
	if len(pod.Containers) != 1 {
		t.Fatalf("%d containers", len(pod.Containers))
	}
	c := pod.Containers[0]
	version := imageVersion(t)
	env := map[string]corev1.EnvVar{}
	for _, e := range c.Env {
		if _, twice := env[e.Name]; twice {
			t.Errorf("%s stands twice", e.Name)
		}
		env[e.Name] = e
	}

	same := func(clause string, got, want any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", clause, diff)
		}
	}
	for _, m := range []struct{ what, name, namespace string }{
		{"ConfigMap", cm.Name, cm.Namespace}, {"Deployment", d.Name, d.Namespace}, {"Service", s.Name, s.Namespace},
	} {
		same("9.2 "+m.what, []string{m.name, m.namespace}, []string{name, namespace})
	}
	same("9.3", pod.ServiceAccountName, "agents-sa")
	same("selectors", []map[string]string{d.Spec.Selector.MatchLabels, s.Spec.Selector}, []map[string]string{{"app": name}, {"app": name}})
	same("selectors: the pod", d.Spec.Template.Labels["app"], name)
	same("7.1", d.Spec.Template.Annotations, map[string]string{
		"instrumentation.opentelemetry.io/inject-sdk":      "monitoring/otel-instrumentation",
		"instrumentation.opentelemetry.io/container-names": c.Name,
	})
	for variable, value := range map[string]string{
		"REGISTRY_URL":                  "http://agent-gateway.agents.svc.cluster.local",
		"AGENT_SELF_URL":                "http://" + name + "." + namespace + ".svc.cluster.local",
		"OTEL_SERVICE_NAME":             name,
		"OTEL_RESOURCE_ATTRIBUTES":      "service.namespace=agents,service.version=" + version + ",deployment.environment=dev,agent.type=support-tickets",
		"OTEL_LOGS_EXPORTER":            "otlp",
		"OTEL_METRICS_EXPORTER":         "otlp",
		"OTEL_METRIC_EXPORT_INTERVAL":   "15000",
		"OTEL_SEMCONV_STABILITY_OPT_IN": "http",
	} {
		same("5, 7.2 "+variable, env[variable], corev1.EnvVar{Name: variable, Value: value})
	}
	same("8.6", c.Image, "bstagecjotdevacr.azurecr.io/"+name+":"+version)
	same("3.5", c.Ports, []corev1.ContainerPort{{Name: "http", ContainerPort: 8000, Protocol: corev1.ProtocolTCP}})

	health := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/health", Port: intstr.FromString("http")}}
	same("9.5 liveness", c.LivenessProbe, &corev1.Probe{ProbeHandler: health, InitialDelaySeconds: 20, PeriodSeconds: 15, TimeoutSeconds: 3, FailureThreshold: 4})
	same("9.5 readiness", c.ReadinessProbe, &corev1.Probe{ProbeHandler: health, InitialDelaySeconds: 10, PeriodSeconds: 10, TimeoutSeconds: 3, FailureThreshold: 3})
	same("9.7", s.Spec, corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{"app": name},
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: corev1.ProtocolTCP}}})
	same("9.8", c.Resources, corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("256Mi")},
		Limits:   corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1536Mi")}})
	if grace, drain := *d.Spec.Template.Spec.TerminationGracePeriodSeconds, int64(25); grace <= drain {
		t.Errorf("the pod is killed after %d s, while streams drain for %d s", grace, drain)
	}
	testSecrets(t, c, pod, env)
	testConfinement(t, c, pod)
}

// platform.md 9.4: the vault is mounted, and whatever is secret comes from its
// copy by reference.
func testSecrets(t *testing.T, c corev1.Container, pod corev1.PodSpec, env map[string]corev1.EnvVar) {
	mounts, volumes := map[string]corev1.VolumeMount{}, map[string]corev1.Volume{}
	for _, m := range c.VolumeMounts {
		mounts[m.MountPath] = m
	}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v
	}
	v := volumes[mounts["/mnt/secrets-store"].Name]
	if v.CSI == nil || v.CSI.Driver != "secrets-store.csi.k8s.io" || v.CSI.VolumeAttributes["secretProviderClass"] != "agents-kv-spc" ||
		v.CSI.ReadOnly == nil || !*v.CSI.ReadOnly {
		t.Errorf("9.4 the volume at /mnt/secrets-store: %+v", v)
	}
	secret := map[string]bool{}
	for _, variable := range config.Variables() {
		secret[variable.Name] = variable.Kind == config.KindKey || variable.Kind == config.KindSecret
	}
	for _, e := range env {
		ref := e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil
		if ref != secret[e.Name] || ref && e.ValueFrom.SecretKeyRef.Name != "agents-kv-sync" {
			t.Errorf("9.4 %s: %+v", e.Name, e)
		}
	}
	for _, required := range []string{"NAT_GATEWAY_API_KEY", "MCP_API_KEY"} {
		if e, ok := env[required]; !ok || e.ValueFrom.SecretKeyRef.Optional != nil {
			t.Errorf("9.4 %s: %+v, the agent does not start without", required, e)
		}
	}
	for _, path := range []string{"/app/plugins/dist/.cache", "/var/lib/weir", "/tmp"} {
		if volumes[mounts[path].Name].EmptyDir == nil {
			t.Errorf("%s is no emptyDir, and the root cannot be written", path)
		}
	}
	testSizes(t, volumes[mounts["/app/plugins/dist/.cache"].Name], volumes[mounts["/var/lib/weir"].Name])
	if len(mounts) != len(volumes) {
		t.Errorf("%d mounts and %d volumes", len(mounts), len(volumes))
	}
}

// testSizes: a pod whose volume outgrows its limit is evicted, so what the agent
// bounds itself has to fit.
func testSizes(t *testing.T, cache, state corev1.Volume) {
	const kept, compiled = 512 << 20, 256 << 20 // images, and as much of instrumented modules; compiled code
	if limit := cache.EmptyDir.SizeLimit.Value(); limit < 2*kept+compiled {
		t.Errorf("the cache may have %d bytes, and weir keeps up to %d there", limit, 2*kept+compiled)
	}
	bound, err := config.ParseSize(maxBytes.FindStringSubmatch(podConfig(t, podChanges))[1])
	if err != nil {
		t.Fatal(err)
	}
	if limit := state.EmptyDir.SizeLimit.Value(); limit < int64(bound)+256<<20 {
		t.Errorf("the state may have %d bytes, and [store] max_bytes is %d", limit, bound)
	}
}

var maxBytes = regexp.MustCompile(`(?m)^(?:# )?max_bytes = "([^"]+)"`)

// platform.md 8.3, and no more rights than the agent needs.
func testConfinement(t *testing.T, c corev1.Container, pod corev1.PodSpec) {
	p, s := pod.SecurityContext, c.SecurityContext
	if !*p.RunAsNonRoot || *p.RunAsUser != 1001 || *p.RunAsGroup != 1001 || *p.FSGroup != 1001 || p.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("8.3 the pod: %+v", p)
	}
	if !*s.RunAsNonRoot || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || *s.Privileged || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || s.Capabilities.Add != nil {
		t.Errorf("8.3 the container: %+v", s)
	}
	if *pod.AutomountServiceAccountToken || pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("the pod has more of its node than it needs")
	}
}

func imageVersion(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../.image-version")
	if err != nil {
		t.Fatal(err)
	}
	version, ok := strings.CutSuffix(string(data), "\n")
	if !ok || strings.Contains(version, "\n") {
		t.Fatalf(".image-version: expected one line, got %q", data)
	}
	return version
}

// Every variable of the pod is one that the agent reads; the six standard ones
// are the OpenTelemetry SDK's, and the platform demands them.
func TestVariablesAreRead(t *testing.T) {
	cm, d, _ := manifests(t)
	known := map[string]bool{}
	for _, v := range config.Variables() {
		known[v.Name] = v.Kind != config.KindIgnored
	}
	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		if !known[e.Name] && !strings.HasPrefix(e.Name, "OTEL_") {
			t.Errorf("%s: nobody reads it", e.Name)
		}
		if e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil {
			if ref := e.ValueFrom.ConfigMapKeyRef; ref.Name != cm.Name || cm.Data[ref.Key] == "" {
				t.Errorf("%s: %s has no such key", e.Name, cm.Name)
			}
		}
	}
}

// change is one line of the shipped agent.toml that is another in a pod.
type change struct{ from, to string }

var podChanges = []change{
	{`dir = "plugins/dist"`, `dir = "/app/plugins/dist"   # pod`},
	{`# lock = "warn"`, `lock = "require"   # pod`},
	{`# max_bytes = "16GiB"`, `max_bytes = "1536MiB"   # pod`},
	{`system = "prompts/system.md"`, `system = "/app/prompts/system.md"   # pod`},
	{`self_check_input = "prompts/self_check_input.md"`, `self_check_input = "/app/prompts/self_check_input.md"   # pod`},
}

var replicaChanges = append(slices.Clone(podChanges),
	change{`# backend = "memory"`, `backend = "jetstream"   # replicas`},
	change{`# url = ""                        # of a NATS server`, `url = "nats://nats.agents.svc.cluster.local:4222"   # replicas`},
	change{`# replicas = 1`, `replicas = 3   # replicas`},
)

// podConfig is agent.toml as it runs in a pod. Each change replaces one whole
// line.
func podConfig(t *testing.T, changes []change) string {
	t.Helper()
	data, err := os.ReadFile("../agent.toml")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	for _, c := range changes {
		found := 0
		for i, line := range lines {
			if strings.HasPrefix(line, c.from) {
				lines[i], found = c.to, found+1
			}
		}
		if found != 1 {
			t.Fatalf("agent.toml: expected one line that begins with %q, got %d", c.from, found)
		}
	}
	return strings.Join(lines, "\n")
}

// The ConfigMaps hold the shipped agent.toml but for the stated lines.
func TestConfigMapsAreCurrent(t *testing.T) {
	const key = "  agent.toml: |\n"
	for file, changes := range map[string][]change{"configmap.yaml": podChanges, "overlays/replicas/configmap.yaml": replicaChanges} {
		want := podConfig(t, changes)
		if *update {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, _, ok := strings.Cut(string(data), key)
			if !ok {
				t.Fatalf("%s: lacks %q", file, key)
			}
			var b strings.Builder
			b.WriteString(head + key)
			for line := range strings.Lines(want) {
				if line != "\n" {
					b.WriteString("    ")
				}
				b.WriteString(line)
			}
			if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cm := decode[corev1.ConfigMap](t, documents(t, file)[0], "v1", "ConfigMap")
		if diff := cmp.Diff(want, cm.Data["agent.toml"]); diff != "" {
			t.Errorf("%s differs from agent.toml (-) where it should not; `make kit` writes it:\n%s", file, diff)
		}
	}
}

// A pod starts with it: the configuration is read and the plugins are loaded as
// in the image, and the lock counts.
func TestConfigMapsPassTheCheck(t *testing.T) {
	app := t.TempDir()
	if err := os.CopyFS(filepath.Join(app, "prompts"), os.DirFS("../prompts")); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"NAT_GATEWAY_API_KEY": "gateway", "MCP_API_KEY": "mcp", "WEIR_STATE_DIR": filepath.Join(app, "state")}
	for _, file := range []string{"configmap.yaml", "overlays/replicas/configmap.yaml"} {
		cm := decode[corev1.ConfigMap](t, documents(t, file)[0], "v1", "ConfigMap")
		for key, value := range cm.Data {
			if key != "agent.toml" {
				env[key] = value
			}
		}
		path := filepath.Join(app, "agent.toml")
		put(t, path, strings.ReplaceAll(cm.Data["agent.toml"], `"/app/`, `"`+app+`/`))
		opts := host.Options{ConfigPath: path, Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
		cfg, err := config.Load(config.Source{Path: path, Env: opts.Env})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range cfg.Plugins.List {
			put(t, p.Module, string(plugintest.Build(t, "plugins/"+p.Name)))
		}
		put(t, cfg.Plugins.LockPath(), "{\n  \"version\": 1\n}\n")
		if _, err := host.Check(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "agent.lock has no entry") {
			t.Errorf("%s: a module that nobody pinned was taken: %v", file, err)
		}
		pins, err := host.Pins(opts)
		if err != nil {
			t.Fatal(err)
		}
		put(t, cfg.Plugins.LockPath(), string(pins.Encode()))
		if _, err := host.Check(t.Context(), opts); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if want := filepath.Join(app, "plugins/dist/.cache"); cfg.Plugins.Cache != want {
			t.Errorf("the cache is %s, the volume %s", cfg.Plugins.Cache, want)
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The overlay: who may connect, how many stay, and that each part fits the base.
func TestReplicas(t *testing.T) {
	const dir = "overlays/replicas/"
	_, base, service := manifests(t)
	pod := base.Spec.Template

	n := decode[networkingv1.NetworkPolicy](t, documents(t, dir+"networkpolicy.yaml")[0], "networking.k8s.io/v1", "NetworkPolicy")
	tcp, port := corev1.ProtocolTCP, intstr.FromString(pod.Spec.Containers[0].Ports[0].Name)
	if diff := cmp.Diff([]networkingv1.NetworkPolicyIngressRule{{
		From:  []networkingv1.NetworkPolicyPeer{{PodSelector: selector("agent-gateway")}},
		Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &port}},
	}}, n.Spec.Ingress); diff != "" {
		t.Errorf("who may connect (-want +got):\n%s", diff)
	}
	if !slices.Equal(n.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
		t.Errorf("policy types %v", n.Spec.PolicyTypes)
	}
	b := decode[policyv1.PodDisruptionBudget](t, documents(t, dir+"poddisruptionbudget.yaml")[0], "policy/v1", "PodDisruptionBudget")
	if b.Spec.MinAvailable.IntValue() != 1 || b.Spec.MaxUnavailable != nil {
		t.Errorf("budget %+v", b.Spec)
	}
	d := decode[appsv1.Deployment](t, documents(t, dir+"deployment.yaml")[0], "apps/v1", "Deployment")
	if *d.Spec.Replicas != 2 || d.Name != base.Name || d.Namespace != base.Namespace || len(d.Spec.Template.Spec.TopologySpreadConstraints) != 1 {
		t.Errorf("replicas %+v", d.Spec)
	}
	for what, labels := range map[string]map[string]string{
		"policy": n.Spec.PodSelector.MatchLabels, "budget": b.Spec.Selector.MatchLabels, "service": service.Spec.Selector,
		"spread": d.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
	} {
		if labels["app"] != pod.Labels["app"] || len(labels) != 1 {
			t.Errorf("the %s selects %v", what, labels)
		}
	}
	for _, at := range []string{n.Namespace, b.Namespace} {
		if at != namespace {
			t.Errorf("namespace %q", at)
		}
	}
}

// What kustomize makes of the overlay is complete, where kustomize is.
func TestOverlayBuilds(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	cmd := exec.Command(kubectl, "kustomize", "--load-restrictor", "LoadRestrictionsNone", "overlays/replicas")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var kinds []string
	for _, doc := range bytes.Split(out, []byte("\n---\n")) {
		var head struct{ Kind string }
		if err := yaml.Unmarshal(doc, &head); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, head.Kind)
		switch head.Kind {
		case "Deployment":
			d := decode[appsv1.Deployment](t, doc, "apps/v1", "Deployment")
			if *d.Spec.Replicas != 2 || len(d.Spec.Template.Spec.Containers) != 1 || d.Spec.Template.Spec.ServiceAccountName != "agents-sa" {
				t.Errorf("%+v", d.Spec)
			}
		case "ConfigMap":
			cm := decode[corev1.ConfigMap](t, doc, "v1", "ConfigMap")
			if cm.Data["LLM_MODEL"] == "" || !strings.Contains(cm.Data["agent.toml"], "\nbackend = \"jetstream\"") {
				t.Error("the ConfigMap lost a part")
			}
		}
	}
	slices.Sort(kinds)
	if want := "[ConfigMap Deployment NetworkPolicy PodDisruptionBudget Service]"; fmt.Sprint(kinds) != want {
		t.Errorf("%v, expected %s", kinds, want)
	}
}

func selector(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}
