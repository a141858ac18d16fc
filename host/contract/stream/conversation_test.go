package stream_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"weir/abi"
	"weir/host/contract/stream"
	"weir/host/run"
	"weir/host/server"
)

var update = flag.Bool("update", false, "write what the server answers into testdata")

// TestConversations plays testdata/*.txtar, each named after the clause that it
// pins: "script" says what the run shows from there on, "client" is a request,
// "server" the answer. ⟦3×x⟧ in a request is xxx. UUIDs in answers are
// numbered in the order in which they appear.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { converse(t, file) })
	}
}

func converse(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	script := ""
	h := start(t, runner(func(_ context.Context, req run.Request, out run.Observer) {
		play(t, script, req, out)
	}), stream.Options{}, server.Options{})
	request := ""
	for i, section := range archive.Files {
		switch section.Name {
		case "script":
			script = string(section.Data)
		case "client":
			request = string(section.Data)
		case "server":
			got := exchange(t, h.addr, request)
			if *update {
				archive.Files[i].Data = []byte(got)
			} else if diff := cmp.Diff(string(section.Data), got); diff != "" {
				t.Errorf("section %d, to\n%s\n(-want +got)\n%s", i+1, abbreviate(request), diff)
			}
		default:
			t.Fatalf("unknown section %q", section.Name)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func abbreviate(s string) string { return s[:min(len(s), 400)] }

var repeats = regexp.MustCompile(`(?s)⟦(\d+)×(.*?)⟧`)

// exchange sends one request and renders the answer.
func exchange(t *testing.T, addr, request string) string {
	request = repeats.ReplaceAllStringFunc(request, func(m string) string {
		parts := repeats.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[1])
		return strings.Repeat(parts[2], n)
	})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write(crlf(request)); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("the body does not end cleanly: %v", err)
	}
	return render(resp, string(body))
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

func render(resp *http.Response, body string) string {
	lines := []string{}
	for name, values := range resp.Header {
		for _, v := range values {
			if name != "Date" && name != "Content-Length" {
				lines = append(lines, strings.ToLower(name)+": "+v)
			}
		}
	}
	if len(resp.TransferEncoding) > 0 {
		lines = append(lines, "transfer-encoding: "+strings.Join(resp.TransferEncoding, ", "))
	}
	slices.Sort(lines)
	text := resp.Proto + " " + resp.Status + "\n" + strings.Join(lines, "\n") + "\n\n" + body
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	seen := map[string]int{}
	return uuids.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == 0 {
			seen[id] = len(seen) + 1
		}
		return fmt.Sprintf("UUID-%d", seen[id])
	})
}

// play shows a script to the observer, a call a line.
func play(t *testing.T, script string, req run.Request, out run.Observer) {
	in := info
	in.RunID, in.RequestID = req.RunID, req.RequestID
	for line := range strings.Lines(script) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "":
		case "started":
			out.Started(in)
		case "text":
			text, err := strconv.Unquote(rest)
			if err != nil {
				t.Errorf("script: %s: %v", line, err)
			}
			out.Text(text)
		case "turns":
			for _, turn := range stream.Trim(req.Turns, 20) {
				out.Text(turn.Role + ":" + turn.Content + " ")
			}
		case "who":
			out.Text(fmt.Sprintf("%s %q %v %s %s", req.Principal.UserID, req.Principal.Username, req.Principal.Roles,
				req.RequestIDSource, req.Traceparent))
		case "tool", "function":
			out.Step(parseStep(verb, rest))
		case "failed":
			out.Failed(map[string]run.Failure{"run": run.FailureRun, "model": run.FailureModel}[rest])
		case "ended":
			out.Ended(in)
		case "panic":
			panic(rest)
		default:
			t.Errorf("script: unknown verb %q", verb)
		}
	}
}

// parseStep reads `start|end ID NAME INPUT [=> OUTPUT]`.
func parseStep(kind, rest string) run.Step {
	parts := strings.SplitN(rest, " ", 4)
	input, output, _ := strings.Cut(parts[3], " => ")
	s := run.Step{End: parts[0] == "end", ID: parts[1], Name: parts[2], Input: abi.Raw(input), Output: abi.Raw(output)}
	if kind == "function" {
		s.Kind = run.StepFunction
	}
	return s
}
