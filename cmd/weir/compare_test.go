package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/host/hosttest"
)

// peer answers as an agent of the contract that blocks or does not.
func peer(t *testing.T, key string, blocks bool) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/version" {
			_, _ = io.WriteString(w, `{"agent_runtime":"peer"}`)
			return
		}
		fmt.Fprintf(w, "intermediate_data: {\"id\":\"D\",\"type\":\"FUNCTION_END\",\"name\":\"guardrail_input_x\",\"payload\":{\"data\":{\"output\":{\"blocked\":%v}}}}\n\ndata: {\"value\":\"hello\"}\n\n", blocks)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// dataset writes n cases that have to be blocked.
func dataset(t *testing.T, n int) string {
	t.Helper()
	var cases []string
	for i := range n {
		cases = append(cases, fmt.Sprintf(`{"inputs":{"question":"q","case_id":"%d"},"expectations":{"expected_blocked":true},"weight":1}`, i))
	}
	path := filepath.Join(t.TempDir(), "guardrails.json")
	write(t, path, "["+strings.Join(cases, ",")+"]")
	return path
}

// Exit codes: 0 whatever the scores are, 1 with --gate when B fails, 2 when the
// comparison did not work, with and without --gate.
func TestCompareExitCodes(t *testing.T) {
	const key = "key-with-no-comma"
	good, bad, suite := peer(t, key, true), peer(t, key, false), dataset(t, 6)
	file := filepath.Join(t.TempDir(), "key.txt")
	write(t, file, key+"\n")
	env := environment{conformKey: key, "OTHER": "wrong-key"}
	for _, tt := range []struct {
		name   string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{"passes", []string{"--a", bad, "--b", good, "--gate"}, exitOK, "B is better", `unknown member "weight"`},
		{"the gate is B's", []string{"--a", good, "--b", bad, "--gate"}, exitFailed, "A is better", ""},
		{"without --gate", []string{"--a", good, "--b", bad}, exitOK, "fail", ""},
		{"the same agent twice", []string{"--a", good, "--b", good}, exitOK, "no difference shown", ""},
		{"key from a file, and names", []string{"--a", good + ",key=@" + file + ",name=old", "--b", good + ",name=new"}, exitOK, "A  old, http", ""},
		{"refused key", []string{"--a", good, "--b", good + ",key-env=OTHER", "--gate"}, exitUsage, "nothing is said about these answers", "refuses the key"},
		{"nobody there", []string{"--a", "http://127.0.0.1:1", "--b", good, "--attempts", "1"}, exitUsage, "cannot be reached", "no readable answer"},
		{"nothing", nil, exitUsage, "", "--a: expected an address"},
		{"no key", []string{"--a", good + ",key=", "--b", good}, exitUsage, "", "expected a key"},
		{"no such variable", []string{"--a", good + ",key-env=GONE", "--b", good}, exitUsage, "", "the variable GONE is not set"},
		{"a comma in the key", []string{"--a", good + ",key=x,secret", "--b", good}, exitUsage, "", "has to come from a file"},
		{"no address", []string{"--a", good}, exitUsage, "", "--b: expected an address"},
		{"no such suite", []string{"--a", good, "--b", good, "--suite", file + ".json"}, exitUsage, "", "no such file"},
		{"too many repetitions", []string{"--a", good, "--b", good, "--repeat", "101"}, exitUsage, "", "1 to 100 repetitions"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"compare", "--suite", suite}, tt.args...)
			env := env
			if tt.args == nil {
				env = nil // what is missing first is said first
			}
			got := invoke(t, env, "", args...)
			if got.code != tt.code || !strings.Contains(got.stdout, tt.stdout) || !strings.Contains(got.stderr, tt.stderr) {
				t.Errorf("got %+v, want %+v", got, tt)
			}
			if all := got.stdout + got.stderr; strings.Contains(all, key) || strings.Contains(all, "wrong-key") || strings.Contains(all, "secret") {
				t.Errorf("a key is shown: %s", all)
			}
		})
	}
}

// What stands in the folder, and in no file of it a key.
func TestCompareFiles(t *testing.T) {
	const key = "key-for-files"
	out := filepath.Join(t.TempDir(), "deep", "report")
	got := invoke(t, environment{conformKey: key}, "", "compare", "--a", peer(t, key, false), "--b", peer(t, key, true), "--suite", dataset(t, 6), "--repeat", "2", "--out", out, "--json")
	var printed, stored struct {
		Suite  string
		Passed *bool
		Notes  []string
		Broken []string
		Suites []struct{ Passed *bool }
		Cases  []struct{ A, B []any }
		Repeat int
		Seed   int
	}
	if err := json.Unmarshal([]byte(got.stdout), &printed); err != nil || got.code != exitOK {
		t.Fatalf("%v: %+v", err, got)
	}
	data, err := os.ReadFile(filepath.Join(out, "result.json"))
	if err != nil || json.Unmarshal(data, &stored) != nil || string(data) != got.stdout {
		t.Fatalf("result.json and --json differ: %v", err)
	}
	if stored.Passed == nil || !*stored.Passed || len(stored.Notes) != 6 || len(stored.Broken) != 0 || len(stored.Cases) != 6 || len(stored.Cases[0].B) != 2 || stored.Seed != 1 {
		t.Errorf("%+v", stored)
	}
	for _, name := range []string{"report.html", "a/guardrails-latest.json", "b/guardrails-latest.json", "result.json"} {
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil || len(data) < 200 || strings.Contains(string(data), key) {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
}

// Our own host beside itself, asked over HTTP with a shipped suite: nothing
// breaks, both are named as what they are, and no difference is shown.
func TestCompareOurOwn(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{})
	got := invoke(t, environment{conformKey: hosttest.ServiceKey}, "", "compare", "--a", w.URL, "--b", w.URL,
		"--suite", filepath.Join("..", "..", "docs", "evaluation", "tools.json"), "--json")
	var r struct {
		Broken     []string
		Provenance map[string]struct {
			Runtime    string `json:"agent_runtime"`
			Consistent bool
			Generation string
		}
		Suites []struct {
			Difference struct {
				Pairs   int
				Decided bool
			}
		}
		Differs []any
	}
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil || got.code != exitOK {
		t.Fatalf("%v: code %d, %s", err, got.code, got.stderr)
	}
	a, b := r.Provenance["a"], r.Provenance["b"]
	if len(r.Broken) > 0 || a.Runtime != "weir" || a != b || !a.Consistent || a.Generation == "" || len(r.Differs) > 0 {
		t.Errorf("%+v", r)
	}
	if len(r.Suites) != 1 || r.Suites[0].Difference.Pairs != 12 || r.Suites[0].Difference.Decided {
		t.Errorf("%+v", r.Suites)
	}
}
