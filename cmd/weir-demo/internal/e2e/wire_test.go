package e2e

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what the host answers into testdata")

// TestWire plays testdata/*.txtar against the whole host as it is shipped, each
// named after the clause that it pins: "model" is what the models answer from
// there on, "client" a request, "server" the stream. ⟦3×x⟧ is xxx. Fragments
// that follow each other are joined, because where they are cut is no promise;
// ids are numbered, and digests and measures have no value.
func TestWire(t *testing.T) {
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
	var w *world
	var request string
	for i, section := range archive.Files {
		text := string(section.Data)
		switch section.Name {
		case "model":
			w = shared(t, play(t, text), nil)
		case "client":
			request = text
		case "server":
			got := w.exchange(t, request)
			if *update {
				archive.Files[i].Data = []byte(got)
			} else if diff := cmp.Diff(text, got, cmpopts.AcyclicTransformer("lines", lines)); diff != "" {
				t.Errorf("section %d, to\n%s\n(-want +got)\n%s", i+1, request, diff)
			}
		default:
			t.Fatalf("unknown section %q", section.Name)
		}
	}
	if *update {
		write(t, file, txtar.Format(archive))
		_ = os.Chmod(file, 0o644)
	}
}

func lines(s string) []string { return strings.SplitAfter(s, "\n") }

// play makes a model of lines. "guard TEXT" is the classifier's answer and
// "guard 503" its status; "text", "call" and "status" make up a reply of the
// agent's model, "then" begins the next one, and the last one is said again.
func play(t *testing.T, script string) *model {
	t.Helper()
	m := &model{}
	replies := [][]func(*chat) bool{nil} // a part reports whether it is a call
	part := func(p func(*chat) bool) { n := len(replies) - 1; replies[n] = append(replies[n], p) }
	for line := range strings.Lines(script) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		status, notStatus := strconv.Atoi(rest)
		switch {
		case verb == "guard" && notStatus == nil:
			m.guard = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "canary", status) }
		case verb == "guard":
			m.guard = func(w http.ResponseWriter, _ *http.Request) { whole(w, rest) }
		case verb == "text":
			part(func(c *chat) bool { c.text(repeated(rest)); return false })
		case verb == "call":
			name, arguments, _ := strings.Cut(rest, " ")
			part(func(c *chat) bool { c.call(0, name, arguments); return true })
		case verb == "then":
			replies = append(replies, nil)
		case verb == "status":
			part(func(c *chat) bool { http.Error(c.w, "canary", status); return false })
		case verb != "":
			t.Fatalf("model: unknown verb %q", verb)
		}
	}
	m.agent = func(c *chat, n int) {
		finish := "stop"
		for _, say := range replies[min(n, len(replies)-1)] {
			if say(c) {
				finish = "tool_calls"
			}
		}
		if c.open {
			c.end(finish)
		}
	}
	return m
}

// exchange sends a request, its path in the first line, and renders the stream.
func (w *world) exchange(t *testing.T, request string) string {
	t.Helper()
	target, body, _ := strings.Cut(request, "\n")
	req := w.request(t.Context(), t, user("x"))
	body = repeated(body)
	req.Body, req.ContentLength, req.GetBody = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
	u, err := url.Parse(w.url + strings.TrimPrefix(target, "POST "))
	if err != nil {
		t.Fatal(err)
	}
	req.URL = u
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	raw := drain(t, resp)
	noSecrets(t, "the stream", raw)
	return render(raw)
}

var (
	repeats  = regexp.MustCompile(`⟦(\d+)×(.*?)⟧`)
	uuids    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	measures = regexp.MustCompile(`"(digest|generation)":"[0-9a-f]+"|"(fuel|ms)":[0-9.]+`)
)

func repeated(text string) string {
	return repeats.ReplaceAllStringFunc(text, func(m string) string {
		parts := repeats.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[1])
		return strings.Repeat(parts[2], n)
	})
}

func render(raw string) string {
	raw = strings.ReplaceAll(raw, "\"}\n\ndata: {\"value\":\"", "")
	raw = measures.ReplaceAllString(raw, `"$1$2":…`)
	seen := map[string]int{}
	raw = uuids.ReplaceAllStringFunc(raw, func(id string) string {
		if seen[id] == 0 {
			seen[id] = len(seen) + 1
		}
		return fmt.Sprintf("UUID-%d", seen[id])
	})
	return counted(raw)
}

// counted writes a long run of one character as ⟦n×c⟧.
func counted(text string) string {
	var b strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		rest := strings.TrimLeft(text[size:], string(r))
		if n := (len(text) - len(rest)) / size; n >= 100 {
			fmt.Fprintf(&b, "⟦%d×%c⟧", n, r)
		} else {
			b.WriteString(text[:len(text)-len(rest)])
		}
		text = rest
	}
	return b.String()
}
