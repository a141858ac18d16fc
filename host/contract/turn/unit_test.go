package turn

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"weir/abi/strictjson"
	"weir/host/fault"
	"weir/host/run"
	"weir/host/store/memory"
)

// reprs are values and what Python prints of them (1.2).
var reprs = map[string]string{
	`{'status': 'success', 'utc': '2026-01-01T00:00:00Z'}`:            `{"status":"success","utc":"2026-01-01T00:00:00Z"}`,
	`{'b': [True, False, None], 'a': {'x': 1.5, 'y': 0, 'z': 1e+16}}`: `{"b":[true,false,null],"a":{"x":1.5,"y":0,"z":1e+16}}`,
	`["it's", 'say "hi"', 'it\'s "both"', 'é\x85\u200b\n\t\\\x07😀']`:  `["it's","say \"hi\"","it's \"both\"","é\u0085\u200b\n\t\\\u0007😀"]`,
	`'\U000e0001 \xa0'`:        `"\udb40\udc01 \u00a0"`,
	`(1, 'a',)`:                `[1,"a"]`,
	`{1: 'a', None: 2}`:        `{"1":"a","null":2}`,
	`{}`:                       `{}`,
	` [ ] `:                    `[]`,
	`-12345678901234567890123`: `-12345678901234567890123`,
}

func TestFromPython(t *testing.T) {
	for in, want := range reprs {
		got, err := fromPython(in)
		wanted, err2 := strictjson.Canonical(nil, []byte(want))
		canonical, err3 := strictjson.Canonical(nil, got)
		if err != nil || err2 != nil || err3 != nil || string(canonical) != string(wanted) {
			t.Errorf("%s: %s, %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", "{", "{'a'}", "{'a': }", "['a' 'b']", "{'a': nan}", "b'x'", "<object at 0x1>", "'a", `'\q'`, `'\ud800'`, "'a\nb'",
		"{'a': 1, 'a': 2}", "{[1]: 2}", "[1] x", "01", "1_000", "set()", "{1, 2}", strings.Repeat("[", 5000), `'\x4'`, "True", "\xff"} {
		if got, err := fromPython(in); err == nil && in != "True" {
			t.Errorf("%q: %s, want an error", in, got)
		}
	}
}

// The reference itself, where it is installed: what it prints is read as what
// it printed.
func TestFromPythonIsPython(t *testing.T) {
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: only recorded lines are read")
	}
	for text, value := range reprs {
		if strings.Contains(text, "None: 2") || strings.HasPrefix(text, "(") {
			continue // JSON does not have it
		}
		cmd := exec.Command(interpreter, "-c", "import json,sys; sys.stdout.buffer.write(repr(json.loads(sys.argv[1])).encode())", value)
		printed, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := fromPython(string(printed))
		a, _ := strictjson.Canonical(nil, got)
		b, _ := strictjson.Canonical(nil, []byte(value))
		if err != nil || string(a) != string(b) {
			t.Errorf("%s: %s, %v, want %s", printed, got, err, value)
		}
	}
}

// Section 5: each policy, both encodings, both messages, and what does not
// verify beside what does.
func TestIdentity(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for name, data := range map[string][]byte{"harness/public_key.pem": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "empty/x": nil, "..bad/public_key.pem": []byte("x")} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := LoadKeys(root)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	for _, bad := range []string{filepath.Join(root, "gone"), t.TempDir()} {
		if _, err := LoadKeys(bad); fault.Of(err) != fault.Invalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
	signed := func(key ed25519.PrivateKey, message string) []byte { return ed25519.Sign(key, []byte(message)) }
	good := hex.EncodeToString(signed(private, "n1"))
	request := func(id, signature, nonce string) string {
		return fmt.Sprintf(`{"task_description":"say hi","run_id":"r","identity_binding":{"identity_id":%q,"signature":%q,"nonce":%q}}`, id, signature, nonce)
	}
	for name, tt := range map[string]struct {
		body                    string
		ignore, verify, require bool
	}{
		"none":            {`{"task_description":"say hi"}`, true, true, false},
		"hex":             {request("harness", good, "n1"), true, true, true},
		"base64":          {request("harness", base64.StdEncoding.EncodeToString(signed(private, "n1")), "n1"), true, true, true},
		"with the run id": {request("harness", hex.EncodeToString(signed(private, "n1.r")), "n1"), true, true, true},
		"another run id":  {request("harness", hex.EncodeToString(signed(private, "n1.x")), "n1"), true, false, false},
		"another nonce":   {request("harness", good, "n2"), true, false, false},
		"another key":     {request("harness", hex.EncodeToString(signed(other, "n1")), "n1"), true, false, false},
		"unknown":         {request("stranger", good, "n1"), true, false, false},
		"a path":          {request("../harness", good, "n1"), true, false, false},
		"no nonce":        {request("harness", hex.EncodeToString(signed(private, "")), ""), true, false, false},
		"no signature":    {request("harness", "", "n1"), true, false, false},
		"text":            {`{"task_description":"say hi","identity_binding":"x"}`, true, false, false},
	} {
		for policy, want := range map[string]bool{IdentityIgnore: tt.ignore, IdentityVerify: tt.verify, IdentityRequire: tt.require} {
			h := newHandler(t, newEngine(), func(o *Options) { o.Identity = Identity{Policy: policy, Keys: keys} })
			_, err := h.answer(t.Context(), as("alice"), []byte(tt.body))
			if want != (err == nil) || err != nil && (fault.Of(err) != fault.Denied || status(err) != 403) {
				t.Errorf("%s, %s: %v", name, policy, err)
			}
		}
	}
}

// Section 7: what a scenario says of its tools becomes a schema of the enforced
// subset; without types that it has, it is refused.
func TestScenarioTools(t *testing.T) {
	tools, err := ScenarioTools([]byte(`{"tools":{"get_time":{"output":{},"parameters":{"zone":"string","n":"int","on":{"type":"bool"}}},"get_user":{"description":"who","expected_params":["id"]},"plain":{}}}`))
	if err != nil || len(tools) != 3 {
		t.Fatalf("%+v, %v", tools, err)
	}
	for i, want := range []string{`{"type":"object","properties":{"zone":{"type":"string"},"n":{"type":"integer"},"on":{"type":"boolean"}}}`,
		`{"type":"object","properties":{"id":{"type":"string"}}}`, `{"type":"object","properties":{}}`} {
		if string(tools[i].Schema) != want || tools[i].Description == "" {
			t.Errorf("%+v, want %s", tools[i], want)
		}
	}
	if tools, err := ScenarioTools([]byte(`{"workflow":{}}`)); err != nil || len(tools) != 0 {
		t.Errorf("none: %v, %v", tools, err)
	}
	for _, bad := range []string{``, `[`, `{"tools":{"a":{"parameters":{"x":"object"}}}}`, `{"tools":[]}`} {
		if _, err := ScenarioTools([]byte(bad)); fault.Of(err) != fault.Invalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// agentv.md 3.1: of the agent's own definitions, whatever their order.
func TestToolDNA(t *testing.T) {
	a, err := ToolDNA(testTools)
	b, err2 := ToolDNA([]run.Tool{testTools[1], testTools[0]})
	c, err3 := ToolDNA(testTools[:1])
	if err != nil || err2 != nil || err3 != nil || a != b || a == c || len(a) != 64 {
		t.Errorf("%s, %s, %s: %v", a, b, c, err)
	}
	if empty, err := ToolDNA(nil); err != nil || empty != "840eb7aa2a9935de63366bacbe9d97e978a859e93dc792a0334de60ed52f8e99" {
		t.Errorf("of none: %s, %v", empty, err)
	}
}

// A session goes on in another process that has the store, by run id, by our own
// reply in a history, and for the one caller of a process.
func TestSessionsSurvive(t *testing.T) {
	e, s := newEngine(), memory.New(memory.Options{})
	local := as("agentv:stdio")
	local.Local, local.Process = true, true
	for name, tt := range map[string]struct {
		c      Caller
		first  string
		second func(first map[string]any) string
	}{
		"run id":  {as("alice"), `{"task_description":"say so; call a","run_id":"r"}`, func(map[string]any) string { return `{"task_description":"one","run_id":"r"}` }},
		"process": {local, `{"task_description":"say so; call a"}`, func(map[string]any) string { return `{"task_description":"one"}` }},
		"history": {as("bob"), `{"task_description":"say so; call a"}`, func(first map[string]any) string {
			return `{"task_description":"one","conversation_history":[{"role":"user","content":"say so; call a"},{"role":"agent","content":` + raw(t, first) + `}]}`
		}},
	} {
		before := newHandlerOn(t, e, s, func(o *Options) { o.NewID = nil })
		first := ask(t, before, tt.c, tt.first)
		if first["action"] != actionCall {
			t.Fatalf("%s: %v", name, first)
		}
		after := newHandlerOn(t, e, s, func(o *Options) { o.NewID = nil })
		got := said(ask(t, after, tt.c, tt.second(first)))
		if got != "final_answer sogot one." {
			t.Errorf("%s: %s", name, got)
		}
		// And the next turn knows the one before.
		e.told()
		again := newHandlerOn(t, e, s, func(o *Options) { o.NewID = nil })
		if name != "history" {
			ask(t, again, tt.c, strings.Replace(tt.second(first), `"one"`, `"say more"`, 1))
			if told := e.told(); !strings.Contains(told, "assistant sogot one.") {
				t.Errorf("%s: the next run was told %s", name, told)
			}
		}
	}
}

// A history that is not the one that a session has had is another conversation:
// nothing waits for it and it consents to nothing.
func TestForkedHistory(t *testing.T) {
	e := newEngine()
	h := newHandler(t, e, nil)
	first := ask(t, h, as("alice"), `{"task_description":"pause"}`)
	old := raw(t, first)
	fork := func(reply string) string {
		return `{"task_description":"approve","conversation_history":[{"role":"user","content":"say forked"},{"role":"agent","content":` + reply + `}]}`
	}
	for name, reply := range map[string]string{"another reply": strings.Replace(old, "id-3", "id-9", 1), "another session": strings.Replace(old, "id-1", "id-8", 1)} {
		if got := said(ask(t, h, as("alice"), fork(reply))); got != "final_answer forked" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := said(ask(t, h, as("bob"), fork(old))); got != "final_answer forked" {
		t.Errorf("another user: %s", got)
	}
	if got := said(ask(t, h, as("alice"), fork(old))); got != "final_answer agreed true." {
		t.Errorf("the control: %s", got)
	}
}

// What we said in the model's place is not taken for the model's when it comes
// back.
func TestOwnSummary(t *testing.T) {
	for summary, want := range map[string]string{"Calling a.": "", "Calling b.": "Calling b.", "I look": "I look"} {
		q, err := decodeRequest([]byte(`{"task_description":"1","history":[{"role":"user","content":"q"},{"role":"agent","content":{"action":"call_tool","tool_name":"a","summary":"`+summary+`"}}]}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, past := rebuild(q); len(past) != 1 || past[0].Text != want {
			t.Errorf("%s: %+v, want %q", summary, past, want)
		}
	}
}

// A harness that goes on to another node leaves what waits behind.
func TestNextNode(t *testing.T) {
	e := newEngine()
	h := newHandler(t, e, nil)
	first := ask(t, h, as("alice"), `{"task_description":"call a"}`)
	body := `{"task_description":"say next","turn":1,"conversation_history":[{"role":"user","content":"call a"},{"role":"agent","content":` + raw(t, first) + `},{"role":"user","content":"say next"}]}`
	if got := said(ask(t, h, as("alice"), body)); got != "final_answer next" {
		t.Error(got)
	}
	if told := e.told(); !strings.Contains(told, "abandon") || !strings.Contains(told, `["user call a" "user say next"]`) {
		t.Error(told)
	}
}

func (h *Handler) counts() (sessions, names int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions), len(h.names)
}

// A session that nobody continues is forgotten and its run cancelled; one that
// is asked in time stays.
func TestSessionTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		h := newHandler(t, e, func(o *Options) { o.SessionTimeout = time.Minute })
		ask(t, h, as("alice"), `{"task_description":"say hi","run_id":"r"}`)
		time.Sleep(59 * time.Second)
		ask(t, h, as("alice"), `{"task_description":"call a","run_id":"r"}`)
		time.Sleep(59 * time.Second)
		if sessions, _ := h.counts(); sessions != 1 || strings.Contains(e.told(), "abandon") {
			t.Error("forgotten too early")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if sessions, names := h.counts(); sessions != 0 || names != 0 || e.told() != "abandon\n" {
			t.Errorf("%d sessions and %d names stay", sessions, names)
		}
	})
}

// erasing notes what is deleted.
type erasing struct {
	Values
	deleted *atomic.Int64
}

func (e erasing) Delete(ctx context.Context, key string) error {
	e.deleted.Add(1)
	return e.Values.Delete(ctx, key)
}

// An expired session is taken out of the store, by the process that had it last.
func TestExpiredSessionIsErased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := values{memory.New(memory.Options{})}
		var deleted atomic.Int64
		process := func() *Handler {
			e := newEngine()
			h, err := New(Deps{Runner: e, Answers: e, Values: s, Sessions: erasing{s, &deleted}},
				Options{Name: "tester", SessionTimeout: time.Minute, NewID: uuid.NewString})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { h.Drain(); h.Wait(context.Background()) })
			return h
		}
		first, second := process(), process()
		ask(t, first, as("alice"), `{"task_description":"say hi","run_id":"r"}`)
		time.Sleep(30 * time.Second)
		ask(t, second, as("alice"), `{"task_description":"say ho","run_id":"r"}`)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if n := deleted.Load(); n != 0 {
			t.Errorf("%d deleted by the process that did not go on with it", n)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := deleted.Load(); n != 1 {
			t.Errorf("%d deleted by the one that did, want 1", n)
		}
	})
}

// Sessions that wait for nothing make room for others; those that wait do not.
func TestCapacity(t *testing.T) {
	e := newEngine()
	h := newHandler(t, e, func(o *Options) { o.MaxSessions, o.MaxPerUser = 3, 2 })
	for range 5 {
		ask(t, h, as("alice"), `{"task_description":"say hi"}`)
	}
	if sessions, _ := h.counts(); sessions != 2 {
		t.Errorf("%d sessions of one user, want 2", sessions)
	}
	ask(t, h, as("bob"), `{"task_description":"call a"}`)
	ask(t, h, as("bob"), `{"task_description":"call a"}`)
	_, err := h.answer(t.Context(), as("bob"), []byte(`{"task_description":"say hi"}`))
	if fault.Of(err) != fault.Unavailable || status(err) != 503 {
		t.Errorf("beyond the bound: %v", err)
	}
	h.Refuse()
	if _, err := h.answer(t.Context(), as("carol"), []byte(`{"task_description":"say hi"}`)); fault.Of(err) != fault.Unavailable {
		t.Errorf("while it drains: %v", err)
	}
}

// A drain ends what is at work and leaves what waits.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where no answer is late but that of a slow run
		e := newEngine()
		h := newHandler(t, e, nil)
		if got := said(ask(t, h, as("alice"), `{"task_description":"slow"}`)); got != actionProcessing {
			t.Fatal(got)
		}
		ask(t, h, as("bob"), `{"task_description":"call a"}`)
		h.Drain()
		h.Wait(context.Background())
		if told := e.told(); !strings.Contains(told, "ended   drain") || strings.Contains(told, "abandon") || len(e.open) != 1 {
			t.Errorf("told %s, %d wait", told, len(e.open))
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"task_description":"x","turn":1,"run_id":"r","conversation_history":[{"role":"agent","content":{"action":"call_tool","tool_name":"a","metadata":{"session_id":"s","reply_id":"r"}}},{"role":"environment","content":[1]}],"identity_binding":{},"span_context":{"traceparent":"x"}}`))
	f.Add([]byte(`{"input":"x","history":[{"role":"user","content":"a"},{"role":"agent","content":"x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		q, err := decodeRequest(data, []string{"input"})
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Errorf("%q: %v", data, err)
			}
			return
		}
		s := newSession("s", as("u"))
		turns, past, err := s.conversation(q)
		if err == nil && strings.TrimSpace(turns[len(turns)-1].Content) == "" {
			t.Errorf("%q: no question", data)
		}
		for _, x := range past {
			if len(x.Calls) == 0 {
				t.Errorf("%q: %+v", data, x)
			}
		}
		q.results(1)
		q.results(2)
	})
}

func FuzzResults(f *testing.F) {
	for _, seed := range []string{"12:00", "Tools returned: [1]", `{'a': "b"}`, `{"status":"error"}`, "(1,)"} {
		f.Add(seed, 1)
		f.Add(seed, 2)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		if n < 1 || n > 100 {
			return
		}
		if len(resultsFrom(text, n)) == 0 && !strings.Contains(text, "[") && !strings.Contains(text, "(") {
			t.Errorf("%q: no result", text)
		}
		if value, err := fromPython(text); err == nil && strictjson.Valid(value) != nil {
			t.Errorf("%q: %q is no JSON", text, value)
		}
	})
}
