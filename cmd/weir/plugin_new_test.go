package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/host/plugin/plugintest"
)

// offline runs the go command in a folder as if there were no network.
func offline(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// A new plugin is formatted, vetted, tested, built, checked, run and called
// with nothing but the go command and this program.
func TestNewPluginWorksOnItsOwn(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOWORK", "off")
	dir := filepath.Join(t.TempDir(), "no-secrets")
	if got := invoke(t, nil, "", "plugin", "new", "no-secrets", "--dir", dir); got.code != exitOK || !strings.Contains(got.stdout, "weir plugin build") {
		t.Fatalf("%+v", got)
	}
	if out, err := exec.Command("gofmt", "-l", dir).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("gofmt: %v\n%s", err, out)
	}
	offline(t, dir, "vet", "./...")
	offline(t, dir, "test", "./...")
	if text := read(t, filepath.Join(dir, "go.mod")); !strings.HasPrefix(text, "module example.com/no-secrets\n") {
		t.Errorf("go.mod:\n%s", text)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.sum")); err == nil {
		t.Error("it has dependencies")
	}

	module := filepath.Join(dir, "no-secrets.wasm")
	got := invoke(t, nil, "", "plugin", "build", dir)
	if got.code != exitOK || !strings.Contains(got.stdout, "hooks describe, configure, check_input") {
		t.Fatalf("build: %+v", got)
	}
	cache := []string{"--cache", plugintest.CacheDir(t)}
	run := func(stdin string, args ...string) result { return invoke(t, nil, stdin, append(args, cache...)...) }

	var c checked
	got = run("", "plugin", "check", module, "--json")
	if err := json.Unmarshal([]byte(got.stdout), &c); err != nil || got.code != exitOK || !c.OK || c.Name != "no-secrets" ||
		c.Kind != "guardrail" || c.Cases != 1 || c.ABI != 1 || c.Limits == nil {
		t.Errorf("check: %+v, %+v, %v", got, c, err)
	}
	got = run("", "plugin", "test", module)
	if got.code != exitOK || !strings.HasPrefix(got.stdout, "ok     an empty question is allowed (check_input, ") || !strings.HasSuffix(got.stdout, "1 cases, 0 failed\n") {
		t.Errorf("test: %+v", got)
	}
	got = run(`{"text":"my Secret","history":[]}`, "plugin", "call", module, "--hook", "check_input", "--config", `{"words":["secret"]}`)
	if got.code != exitOK || !strings.Contains(got.stdout, `"verdict":"block"`) {
		t.Errorf("call: %+v", got)
	}
	got = run("", "plugin", "check", module, "--config", `{"wrods":[]}`)
	if got.code != exitFailed || !strings.Contains(got.stdout, `the configuration is refused: "offset `) || !strings.Contains(got.stdout, "export   check_input (i32, i32) -> (i64)") {
		t.Errorf("a configuration that it refuses: %+v", got)
	}
}

func TestNewPluginRefuses(t *testing.T) {
	full := t.TempDir()
	write(t, filepath.Join(full, "mine"), "text")
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a name":   {[]string{"plugin", "new", "../x"}, exitUsage, "expected a name of a-z, 0-9 and -"},
		"no name":  {[]string{"plugin", "new"}, exitUsage, "expected 1 argument"},
		"a folder": {[]string{"plugin", "new", "x", "--dir", full}, exitFailed, "expected no such folder, or an empty one"},
		"no code":  {[]string{"plugin", "build", filepath.Join(full, "none")}, exitFailed, "weir plugin build: go build: "},
		"two":      {[]string{"plugin", "build", "a", "b"}, exitUsage, "expected at most 1 argument beside the flags, got 2"},
	} {
		if got := invoke(t, nil, "", tt.args...); got.code != tt.code || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if entries, _ := os.ReadDir(full); len(entries) != 1 {
		t.Error("a refused command wrote something")
	}
}
