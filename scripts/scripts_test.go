// Package scripts_test runs the deployment scripts against recording stand-ins
// for the programs that reach outside this machine.
package scripts_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// stand is a copy of the deployment's files, and a PATH that holds stand-ins
// and nothing else that could reach out.
type stand struct {
	dir, bin, log string
}

// The stand-in writes its name and arguments, and fails when FAIL has a
// pattern that they match. OUTPUT_<NAME> is what it prints.
const standIn = `#!/bin/bash
name=${0##*/}
line="$name $*"
printf '%s\n' "$line" >>"$STAND_LOG"
while read -r pattern; do
  if [ -n "$pattern" ] && [[ $line == $pattern ]]; then echo "$name: told to fail" >&2; exit 1; fi
done <<<"${FAIL:-}"
if [ "$name" = kubectl ] && [ "$2" = --raw ]; then printf '%s' "${HEALTH-{\"status\":\"healthy\",\"service\":\"x\"\}}"; fi
`

func newStand(t *testing.T, tools ...string) *stand {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the scripts are for bash")
	}
	s := &stand{dir: t.TempDir(), bin: t.TempDir()}
	s.log = filepath.Join(s.bin, "log")
	for _, tool := range tools {
		s.write(t, filepath.Join(s.bin, tool), standIn, 0o755)
	}
	for _, tool := range []string{"bash", "sed", "dirname", "cat", "cp", "rm", "mktemp", "grep", "sleep", "git"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Skipf("%s is not installed", tool)
		}
		if err := os.Symlink(path, filepath.Join(s.bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"scripts/deploy.sh", "scripts/full-deploy.sh", "scripts/deploy-local.sh", "scripts/image-version.sh",
		"k8s/deployment.yaml", "k8s/configmap.yaml", "Dockerfile"} {
		data, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		s.write(t, filepath.Join(s.dir, name), string(data), 0o755)
	}
	s.version(t, "0.1.0")
	return s
}

func (s *stand) write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *stand) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// version makes the manifest and .image-version name a version.
func (s *stand) version(t *testing.T, v string) {
	t.Helper()
	old := strings.TrimSpace(mustRead(t, "../.image-version"))
	s.write(t, filepath.Join(s.dir, ".image-version"), v+"\n", 0o644)
	s.write(t, filepath.Join(s.dir, "k8s/deployment.yaml"), strings.ReplaceAll(mustRead(t, "../k8s/deployment.yaml"), old, v), 0o644)
}

func mustRead(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// outcome is what a script left behind.
type outcome struct {
	code   int
	output string
	calls  []string
}

func (s *stand) run(t *testing.T, env []string, script string, args ...string) outcome {
	t.Helper()
	_ = os.Remove(s.log)
	cmd := exec.Command(filepath.Join(s.bin, "bash"), append([]string{filepath.Join(s.dir, "scripts", script)}, args...)...)
	cmd.Env = append([]string{"PATH=" + s.bin, "STAND_LOG=" + s.log, "HOME=" + s.dir, "TMPDIR=" + t.TempDir(), "GIT_CEILING_DIRECTORIES=" + filepath.Dir(s.dir)}, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	o := outcome{output: out.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		o.code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(s.log); err == nil {
		o.calls = strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	}
	return o
}

const (
	applyConfig = "kubectl apply -f k8s/configmap.yaml"
	applyAgent  = "kubectl apply -f k8s/deployment.yaml"
	rollout     = "kubectl --namespace agents rollout status deployment/support-tickets-agent --timeout=180s"
)

func acrBuild(registry, tag string) string {
	return "az acr build --registry " + registry + " --image support-tickets-agent:" + tag +
		" --image support-tickets-agent:latest --build-arg VERSION=" + tag + " --build-arg COMMIT=unknown ."
}

// platform.md 10.2: the version, the build with both tags, the order, the wait.
func TestDeploy(t *testing.T) {
	tests := []struct {
		name  string
		from  string
		args  []string
		env   []string
		code  int
		says  string
		after string // in .image-version and, twice, in the manifest
		calls []string
	}{
		{name: "bumps the patch version", from: "0.1.0", after: "0.1.1",
			calls: []string{acrBuild("bstagecjotdevacr", "0.1.1"), applyConfig, applyAgent, rollout}},
		{name: "bumps 9 to 10", from: "1.2.9", after: "1.2.10",
			calls: []string{acrBuild("bstagecjotdevacr", "1.2.10"), applyConfig, applyAgent, rollout}},
		{name: "takes a tag", from: "0.1.0", args: []string{"--tag", "2.0.0"}, after: "2.0.0",
			calls: []string{acrBuild("bstagecjotdevacr", "2.0.0"), applyConfig, applyAgent, rollout}},
		{name: "another registry and a longer wait", from: "0.1.0", env: []string{"REGISTRY=other", "ROLLOUT_TIMEOUT=600"}, after: "0.1.1",
			calls: []string{acrBuild("other", "0.1.1"), applyConfig, applyAgent, strings.Replace(rollout, "180s", "600s", 1)}},
		{name: "a build that fails", from: "0.1.0", env: []string{"FAIL=az acr build*"}, code: 1, says: "the version is 0.1.0 as before", after: "0.1.0",
			calls: []string{acrBuild("bstagecjotdevacr", "0.1.1")}},
		{name: "a ConfigMap that is refused", from: "0.1.0", env: []string{"FAIL=" + applyConfig}, code: 1, after: "0.1.1",
			calls: []string{acrBuild("bstagecjotdevacr", "0.1.1"), applyConfig}},
		{name: "a rollout that does not end", from: "0.1.0", env: []string{"FAIL=*rollout status*"}, code: 1, says: "rollout undo", after: "0.1.1",
			calls: []string{acrBuild("bstagecjotdevacr", "0.1.1"), applyConfig, applyAgent, rollout,
				"kubectl --namespace agents get pods --selector app=support-tickets-agent"}},
		{name: "a short wait", from: "0.1.0", env: []string{"ROLLOUT_TIMEOUT=60"}, code: 1, says: "at least 180 seconds", after: "0.1.0"},
		{name: "a wait that is no number", from: "0.1.0", env: []string{"ROLLOUT_TIMEOUT=long"}, code: 1, says: "at least 180 seconds", after: "0.1.0"},
		{name: "a tag that is no version", from: "0.1.0", args: []string{"--tag", "latest"}, code: 1, says: "expected X.Y.Z", after: "0.1.0"},
		{name: "a tag that is a command", from: "0.1.0", args: []string{"--tag", "1.0.0; touch pwned"}, code: 1, says: "expected X.Y.Z", after: "0.1.0"},
		{name: "no tag after --tag", from: "0.1.0", args: []string{"--tag"}, code: 2, says: "next patch version", after: "0.1.0"},
		{name: "an unknown argument", from: "0.1.0", args: []string{"now"}, code: 2, says: "next patch version", after: "0.1.0"},
		{name: "help", from: "0.1.0", args: []string{"--help"}, says: "next patch version", after: "0.1.0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStand(t, "az", "kubectl")
			s.version(t, tt.from)
			o := s.run(t, tt.env, "deploy.sh", tt.args...)
			if o.code != tt.code || !strings.Contains(o.output, tt.says) {
				t.Errorf("exit code %d, expected %d\n%s", o.code, tt.code, o.output)
			}
			if !slices.Equal(o.calls, tt.calls) {
				t.Errorf("calls\n%s\nexpected\n%s", strings.Join(o.calls, "\n"), strings.Join(tt.calls, "\n"))
			}
			manifest := s.read(t, "k8s/deployment.yaml")
			if s.read(t, ".image-version") != tt.after+"\n" || !strings.Contains(manifest, "/support-tickets-agent:"+tt.after+"\n") ||
				!strings.Contains(manifest, "service.version="+tt.after+",") {
				t.Errorf("version %q, manifest:\n%s", s.read(t, ".image-version"), manifest)
			}
		})
	}
}

// A file that is not as it should be is found before anything is built.
func TestDeployRefuses(t *testing.T) {
	s := newStand(t, "az", "kubectl")
	s.write(t, filepath.Join(s.dir, ".image-version"), "1.0\n", 0o644)
	if o := s.run(t, nil, "deploy.sh"); o.code != 1 || !strings.Contains(o.output, "expected one line X.Y.Z") || o.calls != nil {
		t.Errorf("%+v", o)
	}
	s.version(t, "0.1.0")
	s.write(t, filepath.Join(s.dir, "k8s/deployment.yaml"), "kind: Deployment\n", 0o644)
	if o := s.run(t, nil, "deploy.sh"); o.code != 1 || !strings.Contains(o.output, "expected the image") || o.calls != nil ||
		s.read(t, ".image-version") != "0.1.0\n" || s.read(t, "k8s/deployment.yaml") != "kind: Deployment\n" {
		t.Errorf("%+v", o)
	}
	if o := newStand(t, "az").run(t, nil, "deploy.sh"); o.code != 1 || !strings.Contains(o.output, "kubectl is not on PATH") {
		t.Errorf("%+v", o)
	}
}

// platform.md 10.3: preflight, deployment, smoke test.
func TestFullDeploy(t *testing.T) {
	preflight := []string{"az account show", "az acr show --name bstagecjotdevacr", "kubectl --namespace agents get namespace/agents",
		"kubectl --namespace agents get serviceaccount/agents-sa", "kubectl --namespace agents get secretproviderclass/agents-kv-spc"}
	deploy := append(slices.Clone(preflight), acrBuild("bstagecjotdevacr", "0.1.1"), applyConfig, applyAgent, rollout)
	const raw = "kubectl get --raw /api/v1/namespaces/agents/services/http:support-tickets-agent:80/proxy/health"
	const probe = "kubectl --namespace agents exec deployment/support-tickets-agent -- /usr/local/bin/weir probe http http://127.0.0.1:8000/health"
	with := func(calls []string, more ...string) []string { return append(slices.Clone(calls), more...) }
	tests := []struct {
		name  string
		env   []string
		code  int
		says  []string
		calls []string
	}{
		{name: "healthy", says: []string{`"status":"healthy"`}, calls: with(deploy, raw)},
		{name: "nothing is ready", env: []string{"FAIL=az acr show*\n*serviceaccount/agents-sa"}, code: 1,
			says: []string{"missing: access to the registry", "missing: serviceaccount/agents-sa"}, calls: preflight},
		{name: "a deployment that fails", env: []string{"FAIL=az acr build*"}, code: 1, calls: with(preflight, acrBuild("bstagecjotdevacr", "0.1.1"))},
		{name: "the way is closed", env: []string{"FAIL=*--raw*"}, says: []string{"was not proved"}, calls: with(deploy, raw, raw, probe)},
		{name: "not healthy", env: []string{`HEALTH={"status":"starting"}`, "FAIL=*probe http*"}, code: 1, says: []string{"not healthy", "logs deployment/"},
			calls: with(deploy, raw, raw, probe)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := newStand(t, "az", "kubectl").run(t, append([]string{"SMOKE_ATTEMPTS=2", "SMOKE_INTERVAL=0"}, tt.env...), "full-deploy.sh")
			if o.code != tt.code || !slices.Equal(o.calls, tt.calls) {
				t.Errorf("exit code %d, calls\n%s\nexpected\n%s\n%s", o.code, strings.Join(o.calls, "\n"), strings.Join(tt.calls, "\n"), o.output)
			}
			for _, text := range tt.says {
				if !strings.Contains(o.output, text) {
					t.Errorf("lacks %q:\n%s", text, o.output)
				}
			}
		})
	}
	if o := newStand(t, "kubectl").run(t, nil, "full-deploy.sh"); o.code != 1 || !strings.Contains(o.output, "missing: az on PATH") || o.calls != nil {
		t.Errorf("%+v", o)
	}
}

// platform.md 10.3: docker where it is, else podman, and .env.local.
func TestDeployLocal(t *testing.T) {
	build := " build --build-arg VERSION=0.1.0 --build-arg COMMIT=unknown --tag support-tickets-agent:0.1.0 --tag support-tickets-agent:latest ."
	start := " run --detach --name support-tickets-agent --env-file .env.local --env AGENT_BIND_ADDRESS=0.0.0.0:8000 --env WEIR_STATE_DIR=/var/lib/weir --env AGENT_BUILD_COMMIT=unknown --publish 127.0.0.1:8000:8000" +
		" --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges --user 1001:1001" +
		" --volume support-tickets-agent-cache:/app/plugins/dist/.cache --volume support-tickets-agent-state:/var/lib/weir" +
		" --add-host host.docker.internal:host-gateway support-tickets-agent:0.1.0"
	const remove, ask, logs = " rm --force support-tickets-agent", " exec support-tickets-agent /usr/local/bin/weir probe http http://127.0.0.1:8000/health", " logs support-tickets-agent"
	all := func(engine string, calls ...string) (out []string) {
		for _, c := range calls {
			out = append(out, engine+c)
		}
		return out
	}
	tests := []struct {
		name  string
		tools []string
		bare  bool // without .env.local
		env   []string
		args  []string
		code  int
		says  string
		calls []string
	}{
		{name: "docker", tools: []string{"docker", "podman"}, says: "is healthy at http://127.0.0.1:8000", calls: all("docker", build, remove, start, ask)},
		{name: "podman", tools: []string{"podman"}, says: "is healthy", calls: all("podman", build, remove, start, ask)},
		{name: "the engine that is named", tools: []string{"docker", "podman"}, env: []string{"CONTAINER_ENGINE=podman"}, says: "is healthy", calls: all("podman", build, remove, start, ask)},
		{name: "none", code: 1, says: "neither docker nor podman"},
		{name: "one that is not there", tools: []string{"docker"}, env: []string{"CONTAINER_ENGINE=podman"}, code: 1, says: "podman is not on PATH"},
		{name: "no .env.local", tools: []string{"docker"}, bare: true, code: 1, says: "cp .env.local.example .env.local"},
		{name: "a build that fails", tools: []string{"docker"}, env: []string{"FAIL=docker build*"}, code: 1, calls: all("docker", build)},
		{name: "no old container", tools: []string{"docker"}, env: []string{"FAIL=docker rm*"}, says: "is healthy", calls: all("docker", build, remove, start, ask)},
		{name: "not healthy", tools: []string{"docker"}, env: []string{"FAIL=docker exec*", "WAIT=1"}, code: 1, says: "not healthy within 1s", calls: all("docker", build, remove, start, ask, logs)},
		{name: "stop", tools: []string{"docker"}, args: []string{"--stop"}, calls: all("docker", remove)},
		{name: "an unknown argument", tools: []string{"docker"}, args: []string{"--tag"}, code: 2, says: "stop and remove"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStand(t, tt.tools...)
			if !tt.bare {
				s.write(t, filepath.Join(s.dir, ".env.local"), "MCP_API_KEY=x\n", 0o600)
			}
			o := s.run(t, tt.env, "deploy-local.sh", tt.args...)
			if o.code != tt.code || !strings.Contains(o.output, tt.says) || !slices.Equal(o.calls, tt.calls) {
				t.Errorf("exit code %d, calls\n%s\nexpected\n%s\n%s", o.code, strings.Join(o.calls, "\n"), strings.Join(tt.calls, "\n"), o.output)
			}
		})
	}
}

// platform.md 10.4: a version comes with a change, or is called a redeploy.
func TestImageVersion(t *testing.T) {
	tests := []struct {
		name    string
		subject string
		files   []string // of the last commit
		version string
		code    int
	}{
		{"a change without a version", "host: mend", []string{"main.go"}, "0.1.0", 0},
		{"a change with a version", "host: mend", []string{"main.go", ".image-version", "k8s/deployment.yaml"}, "0.1.1", 0},
		{"a version alone", "version 0.1.1", []string{".image-version"}, "0.1.1", 1},
		{"a version and its manifest", "version 0.1.1", []string{".image-version", "k8s/deployment.yaml"}, "0.1.1", 1},
		{"a redeploy", "redeploy 0.1.1: new base", []string{".image-version", "k8s/deployment.yaml"}, "0.1.1", 0},
		{"no version", "host: mend", []string{"main.go", ".image-version"}, "one", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStand(t)
			git := func(args ...string) {
				t.Helper()
				cmd := exec.Command("git", args...)
				cmd.Dir = s.dir
				cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
					"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
			}
			git("init", "-q")
			git("add", ".")
			git("commit", "-q", "-m", "first")
			if o := s.run(t, nil, "image-version.sh"); o.code != 0 {
				t.Errorf("without history: %+v", o)
			}
			for _, name := range tt.files {
				s.write(t, filepath.Join(s.dir, name), tt.version+"\n", 0o644)
			}
			git("add", ".")
			git("commit", "-q", "-m", tt.subject)
			if o := s.run(t, nil, "image-version.sh"); o.code != tt.code {
				t.Errorf("%+v", o)
			}
		})
	}
	if o := newStand(t).run(t, nil, "image-version.sh"); o.code != 0 {
		t.Errorf("outside a repository: %+v", o)
	}
}

// The scripts stop at the first thing that goes wrong, and git keeps them
// executable.
func TestScriptsAreSafe(t *testing.T) {
	files, err := filepath.Glob("*.sh")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text := mustRead(t, name)
		if !strings.HasPrefix(text, "#!/usr/bin/env bash\n") || !strings.Contains(text, "\nset -euo pipefail\n") {
			t.Errorf("%s: expected bash and set -euo pipefail", name)
		}
		info, err := os.Stat(name)
		if err != nil || runtime.GOOS != "windows" && info.Mode()&0o111 == 0 {
			t.Errorf("%s: not executable, %v", name, err)
		}
		if shellcheck, err := exec.LookPath("shellcheck"); err == nil {
			if out, err := exec.Command(shellcheck, name).CombinedOutput(); err != nil {
				t.Errorf("%s\n%s", name, out)
			}
		}
	}
}
