package conform

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Names of tests that import net/http for these alone.
type (
	httpRequest = http.Request
	httpURL     = url.URL
)

// deployment is our own folder, as far as it is looked at, with a history.
func deployment(t *testing.T) string {
	t.Helper()
	dir, root := t.TempDir(), filepath.Join("..", "..", "..", "..")
	for _, name := range []string{"Dockerfile", ".image-version", "go.mod", "README.md", "k8s/configmap.yaml", "k8s/deployment.yaml",
		"scripts/deploy.sh", "scripts/full-deploy.sh", "scripts/deploy-local.sh"} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, string(data))
	}
	write(t, dir, ".env.local.example", "MCP_API_KEY=\nLLM_MODEL=qwen3:8b\n# LLM_API_KEY=ollama\n")
	git(t, dir, "init", "-q")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "first")
	write(t, dir, "README.md", "An agent. It follows the platform specification, version 1.0.0.\n")
	git(t, dir, "commit", "-q", "-a", "-m", "second")
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// replace edits a file; what it replaces has to be there.
func replace(name, old, new string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(data), old) {
			t.Fatalf("%s lacks %q: %v", name, old, err)
		}
		write(t, dir, name, strings.Replace(string(data), old, new, 1))
	}
}

func both(steps ...func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		for _, step := range steps {
			step(t, dir)
		}
	}
}

const (
	k8sFile    = "k8s/deployment.yaml"
	deployFile = "scripts/deploy.sh"
)

// inPython turns the folder into a Python agent's, which keeps every clause.
func inPython(t *testing.T, dir string) {
	remove("go.mod")(t, dir)
	write(t, dir, "requirements.txt", "starlette==0.40\nuvicorn\n")
	write(t, dir, "pyproject.toml", "[project]\nrequires-python = \">=3.12\"\n")
	write(t, dir, "app/logging_setup.py", "def configure_otlp_log_handler(level): ...\n")
	write(t, dir, "app/metrics.py", "meter = metrics.get_meter(\"a\", \"1.0.0\")\n")
	write(t, dir, "Dockerfile", "FROM python:3.12-slim\nRUN useradd --uid 1001 agent && pip install -r requirements.txt\nUSER agent\nEXPOSE 8000\n"+
		"HEALTHCHECK CMD curl -f http://localhost:8000/health\nCMD [\"uvicorn\", \"app.agent:app\", \"--host\", \"0.0.0.0\", \"--port\", \"8000\"]\n")
	replace(k8sFile, "inject-sdk", "inject-python")(t, dir)
}

func TestPythonAgent(t *testing.T) {
	dir := deployment(t)
	inPython(t, dir)
	if _, failed := run(t, target("", dir)).with(Failed); len(failed) > 0 {
		t.Errorf("failed:\n%s", strings.Join(failed, "\n"))
	}
}

var folderBreaches = []struct {
	clause string
	broken func(*testing.T, string)
	also   []string
}{
	{clause: "platform/language", broken: replace("go.mod", "go 1.26", "go 1.25")},
	{clause: "platform/language", broken: remove("go.mod")},
	{clause: "platform/language", broken: both(inPython, replace("pyproject.toml", "3.12", "3.11"))},
	{clause: "platform/framework", broken: replace("go.mod", "github.com/gofiber/fiber/v2", "github.com/gin-gonic/gin")},
	{clause: "platform/framework", broken: both(inPython, replace("requirements.txt", "starlette", "flask"))},
	{clause: "platform/entry", broken: replace("Dockerfile", `ENTRYPOINT ["/usr/local/bin/weir"]`, "ENTRYPOINT /usr/local/bin/weir")},
	{clause: "platform/entry", broken: both(inPython, replace("Dockerfile", "app.agent:app", "main:app"))},
	{clause: "platform/port", broken: both(replace(k8sFile, "containerPort: 8000", "containerPort: 9000"), replace("Dockerfile", "EXPOSE 8000", "EXPOSE 9000")),
		also: []string{"platform/port-preferred", "platform/image-port"}},
	{clause: "platform/port-preferred", broken: both(replace(k8sFile, "containerPort: 8000", "containerPort: 8080"), replace("Dockerfile", "EXPOSE 8000", "EXPOSE 8080"))},
	{clause: "platform/log-bridge", broken: both(inPython, remove("app/logging_setup.py"))},
	{clause: "platform/meter", broken: both(inPython, replace("app/metrics.py", "get_meter(", "meter("))},
	{clause: "platform/environment-example", broken: remove(".env.local.example")},
	{clause: "platform/environment-example", broken: replace(".env.local.example", "MCP_API_KEY=", "MCP_API_KEY=secret")},
	{clause: "platform/spec-version", broken: replace("README.md", "1.0.0", "one")},

	{clause: "platform/dockerfile", broken: remove("Dockerfile")},
	{clause: "platform/image-base", broken: replace("Dockerfile", "FROM scratch", "FROM debian:12")},
	{clause: "platform/image-base", broken: both(inPython, replace("Dockerfile", "python:3.12-slim", "python:3.9"))},
	{clause: "platform/image-dependencies", broken: replace("Dockerfile", `CMD ["serve"]`, `CMD ["sh", "-c", "pip install x && serve"]`)},
	{clause: "platform/image-user", broken: replace("Dockerfile", "USER 1001:1001", "USER root")},
	{clause: "platform/image-user", broken: replace("Dockerfile", "USER 1001:1001\n", "")},
	{clause: "platform/image-port", broken: replace("Dockerfile", "EXPOSE 8000", "EXPOSE 8000 8001")},
	{clause: "platform/image-port", broken: replace("Dockerfile", "EXPOSE 8000", "EXPOSE 8080")},
	{clause: "platform/image-health", broken: replace("Dockerfile", "/health", "/")},
	{clause: "platform/image-tags", broken: replace(k8sFile, "azurecr.io/support-tickets-agent:", "azurecr.io/other:")},

	{clause: "platform/manifests", broken: remove("k8s/configmap.yaml")},
	{clause: "platform/manifests", broken: remove(k8sFile)},
	{clause: "platform/manifests", broken: replace(k8sFile, "kind: Deployment", "kind: [")},
	{clause: "platform/namespace", broken: replace(k8sFile, "namespace: agents", "namespace: elsewhere"), also: []string{"platform/telemetry-namespace", "platform/self-url"}},
	{clause: "platform/service-account", broken: replace(k8sFile, "agents-sa", "default")},
	{clause: "platform/secrets-mount", broken: replace(k8sFile, "agents-kv-spc", "other")},
	{clause: "platform/secrets-mount", broken: replace(k8sFile, "mountPath: /mnt/secrets-store", "mountPath: /secrets")},
	{clause: "platform/secrets", broken: replace(k8sFile, "name: agents-kv-sync", "name: other")},
	{clause: "platform/secrets", broken: replace(k8sFile, "- name: TICKETS_MCP_URL", "- name: SOME_API_KEY\n              value: plain\n            - name: TICKETS_MCP_URL")},
	{clause: "platform/probes", broken: replace(k8sFile, "path: /health", "path: /healthz")},
	{clause: "platform/probes", broken: replace(k8sFile, "port: http\n            initialDelaySeconds: 10", "port: 8000\n            initialDelaySeconds: 10")},
	{clause: "platform/probe-times", broken: replace(k8sFile, "periodSeconds: 15", "periodSeconds: 5")},
	{clause: "platform/service", broken: replace(k8sFile, "type: ClusterIP", "type: LoadBalancer")},
	{clause: "platform/service", broken: replace(k8sFile, "port: 80\n", "port: 8000\n")},
	{clause: "platform/service", broken: replace(k8sFile, "  selector:\n    app: support-tickets-agent", "  selector:\n    app: other")},
	{clause: "platform/resources", broken: replace(k8sFile, "memory: 1536Mi", "ephemeral-storage: 1Gi")},
	{clause: "platform/registry-variables", broken: replace(k8sFile, "- name: REGISTRY_URL", "- name: REGISTRY")},
	{clause: "platform/self-url", broken: replace(k8sFile, "http://support-tickets-agent.agents.svc.cluster.local", "http://localhost:8000")},
	{clause: "platform/inject", broken: replace(k8sFile, `container-names: "support-tickets-agent"`, `container-names: "agent"`)},
	{clause: "platform/inject", broken: replace(k8sFile, "inject-sdk", "inject-java")},
	{clause: "platform/telemetry-variables", broken: replace(k8sFile, `value: "15000"`, `value: "60000"`)},
	{clause: "platform/telemetry-variables", broken: replace(k8sFile, "OTEL_SEMCONV_STABILITY_OPT_IN", "OTEL_SEMCONV")},
	{clause: "platform/telemetry-variables", broken: replace(k8sFile, ",deployment.environment=dev", "")},
	{clause: "platform/telemetry-namespace", broken: replace(k8sFile, "service.namespace=agents", "service.namespace=other")},
	{clause: "platform/telemetry-version", broken: replace(k8sFile, "service.version=", "service.version=9")},
	{clause: "platform/telemetry-type", broken: replace(k8sFile, "agent.type=support-tickets", "agent.type=SupportTickets")},

	{clause: "platform/image-version", broken: replace(".image-version", ".", "-")},
	{clause: "platform/image-version", broken: remove(".image-version")},
	{clause: "platform/deploy-script", broken: remove(deployFile)},
	{clause: "platform/deploy-script", broken: replace(deployFile, `--image "$AGENT:latest"`, "")},
	{clause: "platform/deploy-script", broken: replace(deployFile, "kubectl apply -f k8s/configmap.yaml\nkubectl apply -f k8s/deployment.yaml", "kubectl apply -f k8s/deployment.yaml\nkubectl apply -f k8s/configmap.yaml")},
	{clause: "platform/deploy-script", broken: replace(deployFile, `rollout status`, "get")},
	{clause: "platform/deploy-wait", broken: replace(deployFile, "ROLLOUT_TIMEOUT:-180", "ROLLOUT_TIMEOUT:-60")},
	{clause: "platform/other-scripts", broken: remove("scripts/deploy-local.sh")},
	{clause: "platform/version-commit", broken: func(t *testing.T, dir string) {
		replace(k8sFile, "dev,agent.type", "dev,agent.type")(t, dir)
		v, err := os.ReadFile(filepath.Join(dir, ".image-version"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, ".image-version", "7.0.0\n")
		git(t, dir, "commit", "-q", "-a", "-m", "version 7")
		write(t, dir, ".image-version", string(v)) // the commit alone is wrong
	}},
}

// A redeploy may change the version alone, and a folder without history has
// nothing to say.
func TestVersionCommit(t *testing.T) {
	dir := deployment(t)
	write(t, dir, ".image-version", "7.0.0\n")
	git(t, dir, "commit", "-q", "-a", "-m", "redeploy 7.0.0")
	if failed, _ := run(t, target("", dir)).with(Failed); strings.Contains(strings.Join(failed, " "), "version-commit") {
		t.Errorf("%q", failed)
	}
}
