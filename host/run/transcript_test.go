package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"weir/abi"
	"weir/host/store/memory"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// TestTranscripts plays testdata/*.txtar: the script section says what the
// world does, the transcript section is everything that the engine did.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, parse(t, section(archive, "script")))
			if *update {
				set(archive, "transcript", got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(section(archive, "transcript")), got); diff != "" {
				t.Errorf("transcript differs (-want +got):\n%s", diff)
			}
		})
	}
}

func section(a *txtar.Archive, name string) []byte {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func set(a *txtar.Archive, name, text string) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = []byte(text)
			return
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text)})
}

// play runs one script and returns the transcript.
func play(t *testing.T, s script) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := &world{script: s, cancel: cancel}
	engine := newEngine(t, w)
	outcome := engine.Run(ctx, request(s), notes{w})
	w.note("state   %s", outcome.State)
	if len(w.records) > 0 {
		w.note("record  %s", strings.Join(kinds(t, w.records), " "))
	}
	return strings.Join(w.lines, "\n") + "\n"
}

func newEngine(t *testing.T, w *world) *Engine {
	t.Helper()
	engine, err := New(Deps{
		Policy: func() (Policy, func()) { return w, func() { w.note("release generation") } },
		Model:  w, Tools: fakeTools{w}, Log: noted{logs{memory.New(memory.Options{})}, w},
	}, Options{Name: "support.invoke", MaxToolCalls: w.script.max, Now: fixedNow, NewID: counter("id-"),
		Seed: func() uint64 { return 7 }})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func request(s script) Request {
	return Request{
		Principal: Principal{UserID: "support-rep-1", Pseudonym: "p-1"},
		RequestID: "req-1", RequestIDSource: SourceGateway, Contract: "stream", RunID: "run-1",
		Turns: append(s.history, abi.Turn{Role: abi.RoleUser, Content: s.question}),
	}
}

// kinds lists the records, a dropped payload in brackets, and verifies chain
// and payload digests on the way.
func kinds(t *testing.T, records [][]byte) []string {
	t.Helper()
	var out []string
	previous := ""
	for i, raw := range records {
		var r Record
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
		var h Header
		if err := json.Unmarshal(r.Header, &h); err != nil {
			t.Fatal(err)
		}
		if h.Previous != previous || h.N != i+1 {
			t.Errorf("record %d: n=%d, previous %q, want %q", i+1, h.N, h.Previous, previous)
		}
		previous = digest(r.Header)
		if r.Payload == nil {
			if !r.Blob {
				h.Kind = "[" + h.Kind + "]"
			}
		} else if digest(r.Payload) != h.Payload {
			t.Errorf("record %d (%s): the payload is not what the header names", i+1, h.Kind)
		}
		out = append(out, h.Kind)
	}
	return out
}

// parse reads a script: one directive a line.
//
//	question TEXT          the latest user turn
//	history ROLE TEXT      a turn before it
//	max N                  tool calls
//	block TEXT             the input guards refuse
//	broken                 the input guards fail
//	deny TOOL / withhold TOOL
//	model text "a" "b"     a reply in pieces
//	model call TOOL ARGS   a reply with one tool call; more lines with "and call"
//	and fail CODE          … and then the provider fails
//	hang                   the model stalls after its text
//	tool NAME TEXT / tool-fails NAME TEXT / tool-breaks NAME TEXT
//	action JSON            the next action of a scripted workflow (the last repeats)
//	leave model|tool|input the client leaves there
func parse(t *testing.T, text []byte) script {
	t.Helper()
	s := script{tools: map[string]toolTurn{}}
	for scan := bufio.NewScanner(bytes.NewReader(text)); scan.Scan(); {
		word, rest, _ := strings.Cut(scan.Text(), " ")
		switch word {
		case "", "#":
		case "question":
			s.question = rest
		case "history":
			role, content, _ := strings.Cut(rest, " ")
			s.history = append(s.history, abi.Turn{Role: role, Content: content})
		case "max":
			s.max, _ = strconv.Atoi(rest)
		case "block":
			s.blockIn = rest
		case "broken":
			s.failIn = true
		case "deny":
			s.denyCall = rest
		case "withhold":
			s.withhold = rest
		case "model":
			s.model = append(s.model, parseModel(t, rest))
		case "and":
			last := &s.model[len(s.model)-1]
			if code, fails := strings.CutPrefix(rest, "fail "); fails {
				last.fail = code
				continue
			}
			last.calls = append(last.calls, parseCall(strings.TrimPrefix(rest, "call "), len(last.calls)))
		case "hang":
			s.hang = true
		case "tool", "tool-fails", "tool-breaks":
			name, result, _ := strings.Cut(rest, " ")
			s.tools[name] = toolTurn{text: result, fail: word == "tool-fails", err: word == "tool-breaks"}
		case "action":
			var a abi.Action
			if err := json.Unmarshal([]byte(rest), &a); err != nil {
				t.Fatalf("%s: %v", rest, err)
			}
			s.actions = append(s.actions, a)
		case "leave":
			s.leave = rest
		default:
			t.Fatalf("unknown directive %q", word)
		}
	}
	return s
}

func parseModel(t *testing.T, rest string) modelTurn {
	t.Helper()
	word, rest, _ := strings.Cut(rest, " ")
	var m modelTurn
	switch word {
	case "text":
		for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				t.Fatalf("%s: %v", rest, err)
			}
			piece, _ := strconv.Unquote(quoted)
			m.text = append(m.text, piece)
			rest = rest[len(quoted):]
		}
	case "call":
		m.calls = append(m.calls, parseCall(rest, 0))
	default:
		t.Fatalf("unknown model turn %q", word)
	}
	return m
}

func parseCall(rest string, n int) abi.ToolCall {
	name, args, _ := strings.Cut(rest, " ")
	return abi.ToolCall{ID: "call-" + strconv.Itoa(n+1), Name: name, Arguments: args}
}
