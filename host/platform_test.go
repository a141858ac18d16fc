package host_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"weir/abi"
	"weir/host/contract/platform"
	"weir/host/hosttest"
	"weir/host/plugin/plugintest"
)

func manifest(t *testing.T, w *hosttest.World) platform.Manifest {
	t.Helper()
	var m platform.Manifest
	if err := json.Unmarshal([]byte(w.Get(t, platform.PathManifest)), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func skillIDs(m platform.Manifest) string {
	var ids []string
	for _, s := range m.Skills {
		ids = append(ids, s.ID+"="+s.Name)
	}
	return strings.Join(ids, " ")
}

// described is a module that also says what it can do.
func described(g *plugintest.Guest, kind string, skills ...abi.Skill) []byte {
	d := abi.Description{Name: "described", Version: "1.0.0", ABI: abi.Version, Kind: kind, Skills: skills}
	return g.Answer(abi.HookDescribe, string(d.AppendJSON(nil))).Build()
}

// Section 6 of the platform's specification: the manifest names what the
// operator and the plugins of the current policy say, without a key.
func TestManifest(t *testing.T) {
	const title = "[[agent.skills]]\nid = 'a'\nname = 'Ours'\ndescription = 'Is ours.'\ntags = ['t']\n"
	w := hosttest.Start(t, hosttest.Options{Config: title, Write: func(w *hosttest.World) {
		w.Variant(t, "a")
		reply := abi.StepReply{Action: abi.Action{Type: abi.ActionAnswer, Text: "x"}}
		w.WriteFile(t, "plugins/flow.wasm", described(plugintest.NewGuest().Answer(abi.HookStep, string(reply.AppendJSON(nil))),
			abi.KindWorkflow, abi.Skill{ID: "a", Name: "Theirs"}, abi.Skill{ID: "flow", Name: "Flow"}))
		verdict := abi.Verdict{Verdict: abi.VerdictAllow}
		w.WriteFile(t, "plugins/screen.wasm", described(plugintest.NewGuest().Answer(abi.HookCheckInput, string(verdict.AppendJSON(nil))),
			abi.KindGuardrail, abi.Skill{ID: "screen", Name: "Screen"}))
	}})
	m := manifest(t, w)
	if m.Name != "Support Tickets Agent" || m.Version != "0.1.0" || m.Description == "" || m.URL != "/" ||
		m.Capabilities != (platform.Capabilities{Streaming: true, Conversational: true, DirectAPI: true}) {
		t.Errorf("manifest %+v", m)
	}
	if got := skillIDs(m); got != "a=Ours flow=Flow screen=Screen" {
		t.Errorf("skills %s", got)
	}

	// Hot: the next policy has another manifest. It says nothing of the
	// generation where only the skills differ.
	text := strings.Replace(w.Config(t, "a"), "name = 'Ours'", "name = 'Changed'", 1)
	w.WriteFile(t, "agent.toml", []byte(strings.Replace(text, "[agent]\n", "[agent]\nmax_history = 1\n", 1)))
	if _, err := w.Host.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	m = manifest(t, w)
	if got := skillIDs(m); got != "a=Changed flow=Flow screen=Screen" || m.Capabilities.Conversational {
		t.Errorf("skills %s, %+v", got, m.Capabilities)
	}
	before := w.Host.Status().Active.Generation
	w.WriteFile(t, "agent.toml", []byte(strings.Replace(strings.Replace(text, "[agent]\n", "[agent]\nmax_history = 1\n", 1), "'Changed'", "'Again'", 1)))
	if _, err := w.Host.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := skillIDs(manifest(t, w)); !strings.HasPrefix(got, "a=Again ") || w.Host.Status().Active.Generation != before {
		t.Errorf("skills %s, generation %s, before %s", got, w.Host.Status().Active.Generation, before)
	}
}

// Section 5: the gateway reads the manifest while it answers the registration,
// so the listener must be open by then.
func TestRegisters(t *testing.T) {
	started, seen := make(chan string, 1), make(chan string, 10)
	gateway := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		url := <-started
		started <- url // for the next attempt
		resp, err := http.Get(url + platform.PathManifest)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadGateway)
			return
		}
		manifest, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		seen <- r.URL.Path + " " + string(body) + " " + string(manifest)
	}))
	defer gateway.Close()
	w := hosttest.Start(t, hosttest.Options{Env: map[string]string{"REGISTRY_URL": gateway.URL, "AGENT_SELF_URL": "http://self"}})
	started <- w.URL
	select {
	case got := <-seen:
		if !strings.HasPrefix(got, `/agents/register-url {"endpoint":"http://self"} {"name":"Support Tickets Agent",`) {
			t.Errorf("the gateway saw %s", got)
		}
	case <-time.After(time.Minute):
		t.Fatalf("nobody registered; log:\n%s", w.Log)
	}
}

// Section 5.4: a gateway that hangs delays neither serving nor the stop.
func TestServesWithoutGateway(t *testing.T) {
	entered := make(chan struct{}, 1)
	gateway := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		entered <- struct{}{}
		<-r.Context().Done()
	}))
	defer gateway.Close()
	w := hosttest.Start(t, hosttest.Options{Env: map[string]string{"REGISTRY_URL": gateway.URL}})
	<-entered
	if answer, err := w.Ask(t.Context(), "hello"); err != nil || answer.Text == "" {
		t.Errorf("%+v, %v", answer, err)
	}
	begin := time.Now()
	w.Stop(t)
	if took := time.Since(begin); took > 9*time.Second { // the attempt's own time-out is 10 s
		t.Errorf("the stop took %v", took)
	}
}

// Section 5.5: without a gateway one line says so.
func TestSkipsRegistration(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{})
	if !strings.Contains(w.Log.String(), "level=INFO msg=\"not registered with an agent gateway") {
		t.Errorf("log:\n%s", w.Log)
	}
}

// A host that drains says so to whoever had begun to ask.
func TestReadiness(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{})
	edit(t, w, `drain = "300ms"`, `drain = "1m"`) // it ends when the request has
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	if got := w.Get(t, platform.PathReady); got != "ready" {
		t.Errorf("got %q", got)
	}
	address := strings.TrimPrefix(w.URL, "http://")
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// A connection that has a request is not closed: the server has read this
	// one's head and waits for its body.
	_, _ = io.WriteString(c, "GET "+platform.PathReady+" HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
	r := bufio.NewReader(c)
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusContinue {
		t.Fatal(resp, err)
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); w.Stop(t) }()
	for { // until the listener is closed
		other, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		_ = other.Close()
	}
	_, _ = io.WriteString(c, "x")
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 503 || string(body) != "draining" {
		t.Errorf("got %d %q", resp.StatusCode, body)
	}
	<-stopped
}
