// Package agenttest is an agent that reads its part from a script, as a process
// of its own that speaks the protocol over every transport. It shares no code
// with weir's agent side.
package agenttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/cmd/weir/internal/agentv/python"
	"weir/cmd/weir/internal/agentv/scenario"
)

// The environment of the process.
const (
	modeVariable   = "WEIR_AGENTTEST_MODE"
	scriptVariable = "WEIR_AGENTTEST_SCRIPT"
)

// Modes are the transports: stdio is a process for each turn or many lines.
func Modes() []string { return []string{"http", "tcp", "unix", "stdio"} }

// A Script is what the agent answers to what it is told.
type Script map[string]json.RawMessage

// Follow is the script of an agent that does what a scenario expects.
func Follow(t testing.TB, s *scenario.Scenario) Script {
	t.Helper()
	script := Script{}
	for _, n := range s.Nodes {
		told := n.Task
		if len(n.RequiredTools) > 0 {
			script[told] = call(n.RequiredTools)
			told = observed(t, s, n.RequiredTools)
		}
		script[told] = final(t, n)
	}
	return script
}

// Astray is the script of an agent that takes the right path and answers
// nonsense at its end.
func Astray(t testing.TB, s *scenario.Scenario) Script {
	script := Follow(t, s)
	for told, answer := range script {
		if strings.Contains(string(answer), "final_answer") {
			script[told] = json.RawMessage(`{"action":"final_answer","summary":"I would rather not say."}`)
		}
	}
	return script
}

func call(tools []string) json.RawMessage {
	if len(tools) == 1 {
		return object(map[string]any{"action": "call_tool", "tool_name": tools[0], "tool_params": map[string]any{"zone": "UTC"}, "metadata": named})
	}
	var calls []any
	for _, tool := range tools {
		calls = append(calls, map[string]any{"tool": tool, "params": map[string]any{}})
	}
	return object(map[string]any{"action": "call_multiple_tools", "tool_calls": calls, "metadata": named})
}

var named = map[string]any{"agent_name": "reference"}

// observed is what the harness says after the tools.
func observed(t testing.TB, s *scenario.Scenario, tools []string) string {
	t.Helper()
	var results []string
	for _, tool := range tools {
		result := string(s.Tools[tool].Output)
		if result == "" {
			result = fmt.Sprintf(`{"status":"success","message":"Executed %s"}`, tool)
		}
		results = append(results, result)
	}
	text, err := python.Observation([]byte(results[0]))
	if len(tools) > 1 {
		text, err = python.Observations([]byte("[" + strings.Join(results, ",") + "]"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func final(t testing.TB, n scenario.Node) json.RawMessage {
	t.Helper()
	answer := map[string]any{"action": "final_answer", "metadata": named}
	words := []string{}
	for _, a := range n.Outcome {
		var expected any
		if err := json.Unmarshal(a.Expected, &expected); err != nil {
			t.Fatal(err)
		}
		if a.Property != "" {
			answer[a.Property] = expected
			continue
		}
		words = append(words, fmt.Sprint(expected))
	}
	words = append(words, n.Keywords...)
	if len(words) == 0 {
		words = []string{"It is done."}
	}
	answer["summary"] = strings.Join(words, " ")
	return object(answer)
}

func object(v map[string]any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Start starts the agent in a mode and returns its address for the harness. It
// ends with the test.
func Start(t testing.TB, script Script, mode string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "script.json")
	data, err := json.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if mode == "stdio" {
		set := t.(interface{ Setenv(string, string) }).Setenv
		set(modeVariable, mode)
		set(scriptVariable, path)
		return "'" + os.Args[0] + "'"
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), modeVariable+"="+mode, scriptVariable+"="+path)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("agent in mode %s: %v", mode, err)
	}
	return strings.TrimSpace(address)
}

// Main is the process. It belongs into TestMain, before anything else, and
// returns where this is not such a process.
func Main() {
	mode := os.Getenv(modeVariable)
	if mode == "" {
		return
	}
	if err := serve(mode); err != nil {
		fmt.Fprintln(os.Stderr, "agenttest:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(mode string) error {
	data, err := os.ReadFile(os.Getenv(scriptVariable))
	if err != nil {
		return err
	}
	var script Script
	if err := json.Unmarshal(data, &script); err != nil {
		return err
	}
	switch mode {
	case "stdio":
		fmt.Fprintln(os.Stderr, "reference agent at work")
		return script.lines(os.Stdin, os.Stdout)
	case "http":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Printf("http://%s/execute_task\n", l.Addr())
		return http.Serve(l, script)
	}
	target := map[string]string{"tcp": "127.0.0.1:0", "unix": "s"}[mode]
	l, err := net.Listen(mode, target)
	if err != nil {
		return err
	}
	target = l.Addr().String()
	if mode == "unix" {
		if target, err = filepath.Abs(target); err != nil {
			return err
		}
	}
	fmt.Printf("%s:%s\n", mode, target)
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			_ = script.lines(c, c)
		}()
	}
}

// lines answers each line; the last may have no end.
func (s Script) lines(in io.Reader, out io.Writer) error {
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			if _, err := fmt.Fprintf(out, "%s\n", s.answer([]byte(line))); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// ServeHTTP implements http.Handler.
func (s Script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(s.answer(body))
}

func (s Script) answer(request []byte) []byte {
	var q struct {
		Task *string `json:"task_description"`
	}
	if err := json.Unmarshal(request, &q); err != nil || q.Task == nil {
		return []byte(`{"action":"error","message":"expected task_description"}`)
	}
	if answer, ok := s[*q.Task]; ok {
		return answer
	}
	return object(map[string]any{"action": "error", "message": "not in the script: " + *q.Task})
}
