package harness_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/cmd/weir/internal/agentv/agent"
	"weir/cmd/weir/internal/agentv/agenttest"
	"weir/cmd/weir/internal/agentv/harness"
)

// Every shipped scenario runs: an agent that follows it passes, one that answers
// nonsense does not, and both ledgers hold.
func TestShipped(t *testing.T) {
	files, err := filepath.Glob(shipped + "/*.json")
	if err != nil || len(files) != 7 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, path := range files {
		file := filepath.Base(path)
		t.Run(file, func(t *testing.T) {
			s := load(t, file)
			right := run(t, s, agenttest.Start(t, agenttest.Follow(t, s), "http"), harness.Options{})
			if !right.Passed || right.PassRate != 1 || right.AgentName != "reference" || len(right.Tries[0].Nodes) != len(s.Nodes) {
				t.Errorf("right: %+v", right)
			}
			verify(t, s, right)
			wrong := run(t, s, agenttest.Start(t, agenttest.Astray(t, s), "http"), harness.Options{})
			if wrong.Passed || wrong.Successful != 0 || wrong.PassAtK != 0 || len(wrong.Tries[0].Nodes[0].Reasons) == 0 {
				t.Errorf("wrong: %+v", wrong)
			}
			verify(t, s, wrong)
		})
	}
}

// own_edge_pass reaches 100 % over every transport, with a process or connection
// for each turn and for all of them, in the document's form of requests and in
// that of the newest harness.
func TestTransports(t *testing.T) {
	s := load(t, "own_edge_pass.json")
	for _, mode := range agenttest.Modes() {
		for _, tt := range []struct {
			payload    harness.Payload
			persistent bool
		}{{harness.Contract, false}, {harness.Contract, true}, {harness.V17, false}} {
			t.Run(fmt.Sprintf("%s %s persistent %v", mode, tt.payload, tt.persistent), func(t *testing.T) {
				address := agenttest.Start(t, agenttest.Follow(t, s), mode)
				r := run(t, s, address, harness.Options{Attempts: 2, Payload: tt.payload, Agent: agent.Options{Persistent: tt.persistent}})
				if !r.Passed || r.PassRate != 1 || r.Successful != 2 || r.PassAtK != 1 {
					t.Errorf("%+v", r)
				}
				verify(t, s, r)
			})
		}
	}
	t.Run("control", func(t *testing.T) {
		for _, mode := range agenttest.Modes() {
			if r := run(t, s, agenttest.Start(t, agenttest.Astray(t, s), mode), harness.Options{}); r.Passed {
				t.Errorf("a wrong agent over %s: %+v", mode, r)
			}
		}
	})
}

// An agent that is not ours and knows nothing but Python's standard library.
func TestPython(t *testing.T) {
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: only agents of this repository were driven")
	}
	script, err := filepath.Abs("testdata/agent.py")
	if err != nil {
		t.Fatal(err)
	}
	s := load(t, "own_edge_pass.json")
	t.Run("stdio", func(t *testing.T) {
		for _, payload := range []harness.Payload{harness.Contract, harness.V17} {
			r := run(t, s, interpreter+" '"+script+"'", harness.Options{Payload: payload})
			if !r.Passed || r.AgentName != "clockwork" {
				t.Errorf("%s: %+v", payload, r)
			}
			verify(t, s, r)
			if log := of(events(t, r), "adapter_debug"); len(log) != 2 || log[0]["message"] != "thinking\n" || log[0]["category"] != "stderr" {
				t.Errorf("stderr in the ledger: %v", log)
			}
		}
	})
	t.Run("http", func(t *testing.T) {
		cmd := exec.Command(interpreter, script, "--http")
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
			t.Fatal(err)
		}
		r := run(t, s, strings.TrimSpace(address), harness.Options{})
		if !r.Passed || r.AgentName != "clockwork" {
			t.Errorf("%+v", r)
		}
		verify(t, s, r)
	})
}
