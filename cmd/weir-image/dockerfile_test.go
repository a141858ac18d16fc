package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"weir/host/plugin/plugintest"
)

// instruction is one of a Dockerfile's.
type instruction struct{ name, args string }

// stages reads a Dockerfile.
func stages(text string) (out [][]instruction) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if name == "FROM" {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], instruction{name, strings.TrimSpace(args)})
	}
	return out
}

// platform.md 8: two stages, an empty base, and the same settings as in the
// layout: whichever way the image is built, it runs the same.
func TestDockerfileAgrees(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(plugintest.Root(t), "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	s := stages(string(text))
	if len(s) != 2 || !strings.HasPrefix(s[0][0].args, "golang:1.26") || s[1][0].args != "scratch" {
		t.Fatalf("expected a stage on golang:1.26 and one on scratch, got %q", s)
	}
	got := v1.Config{Volumes: map[string]struct{}{}, ExposedPorts: map[string]struct{}{}, Labels: map[string]string{}}
	list := func(text string) (out []string) {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Errorf("expected the form without a shell: %q", text)
		}
		return out
	}
	known := strings.NewReplacer("$COMMIT", "c", "$VERSION", "1.2.3", `"`, "")
	for _, i := range s[1] {
		switch i.name {
		case "USER":
			got.User = i.args
		case "WORKDIR":
			got.WorkingDir = i.args
		case "ENTRYPOINT":
			got.Entrypoint = list(i.args)
		case "CMD":
			got.Cmd = list(i.args)
		case "ENV":
			got.Env = append(got.Env, known.Replace(i.args))
		case "EXPOSE":
			got.ExposedPorts[i.args+"/tcp"] = struct{}{}
		case "STOPSIGNAL":
			got.StopSignal = i.args
		case "VOLUME":
			for _, v := range list(i.args) {
				got.Volumes[v] = struct{}{}
			}
		case "LABEL":
			name, value, _ := strings.Cut(known.Replace(i.args), "=")
			got.Labels[name] = value
		case "HEALTHCHECK":
			got.Healthcheck = healthcheck(t, i.args, list)
		}
	}
	c := content{name: "support-tickets-agent", version: "1.2.3", commit: "c", cache: "app/plugins/dist/.cache"}
	if diff := cmp.Diff(c.config(), got); diff != "" {
		t.Errorf("the layout (-) and the Dockerfile (+) differ:\n%s", diff)
	}
}

func healthcheck(t *testing.T, args string, list func(string) []string) *v1.HealthConfig {
	options, command, _ := strings.Cut(args, "CMD ")
	h := &v1.HealthConfig{Test: append([]string{"CMD"}, list(command)...)}
	for _, o := range strings.Fields(options) {
		name, value, _ := strings.Cut(o, "=")
		if name == "--retries" {
			h.Retries = int(value[0] - '0')
			continue
		}
		d, err := time.ParseDuration(value)
		if err != nil {
			t.Errorf("%s: %v", o, err)
		}
		*map[string]*time.Duration{"--interval": &h.Interval, "--timeout": &h.Timeout, "--start-period": &h.StartPeriod}[name] = d
	}
	return h
}

// A build from the checkout must not take what this machine has built or what
// it keeps to itself.
func TestDockerignore(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(plugintest.Root(t), ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, want := range []string{".git", ".env", ".env.*", "bin", "plugins/dist", "**/*.wasm"} {
		if !slices.Contains(lines, want) {
			t.Errorf("lacks %s", want)
		}
	}
}
