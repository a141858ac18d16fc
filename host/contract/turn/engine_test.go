package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir/abi"
	"weir/host/fault"
	"weir/host/run"
	"weir/host/store"
	"weir/host/store/memory"
)

func TestMain(m *testing.M) {
	// The library's pool of workers sleeps for up to ten seconds after its end.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// engine plays runs whose question says what they do, and notes what it is
// told.
type engine struct {
	mu       sync.Mutex
	lines    []string
	open     map[string]*played // by run
	release  chan struct{}      // closed: slow runs go on
	attached int                // times that somebody listened to a run that waited
}

type played struct {
	user    string
	out     run.Observer
	over    func()
	pending run.Interaction
	steps   []string

	attached bool // somebody listens since it waits
}

func newEngine() *engine {
	return &engine{open: map[string]*played{}, release: make(chan struct{})}
}

func (e *engine) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, fmt.Sprintf(format, args...))
}

// told returns what was noted since the last call.
func (e *engine) told() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	lines := e.lines
	e.lines = nil
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// Run implements Runner. The question is a list of steps with semicolons:
//
//	say TEXT · call NAME… · pause · choose · slow · fail · model · cancel
func (e *engine) Run(ctx context.Context, req run.Request, out run.Observer, over func()) {
	out.Started(run.Info{RunID: req.RunID, Generation: "g1"})
	var turns []string
	for _, t := range req.Turns {
		turns = append(turns, t.Role+" "+t.Content)
	}
	e.note("begin   %q by %s trace %q", turns, req.Principal.UserID, req.Traceparent)
	for _, x := range req.Caller.Past {
		e.note("past    %q %v -> %v", x.Text, x.Calls, x.Results)
	}
	p := &played{user: req.Principal.UserID, out: out, over: over}
	for step := range strings.SplitSeq(req.Turns[len(req.Turns)-1].Content, ";") {
		p.steps = append(p.steps, strings.TrimSpace(step))
	}
	e.play(ctx, req.RunID, p)
}

func (e *engine) play(ctx context.Context, id string, p *played) {
	for len(p.steps) > 0 {
		word, rest, _ := strings.Cut(p.steps[0], " ")
		p.steps = p.steps[1:]
		switch word {
		case "say":
			p.out.Text(rest)
		case "call":
			var prompt run.CallsPrompt
			for i, name := range strings.Fields(rest) {
				prompt.Calls = append(prompt.Calls, run.ProposedCall{Tool: name, Arguments: abi.Raw(fmt.Sprintf(`{"n":%d}`, i+1))})
			}
			body, _ := json.Marshal(prompt)
			e.park(id, p, run.KindCalls, body)
			return
		case "pause":
			e.park(id, p, abi.AskBinaryChoice, abi.Raw(`{"input_type":"binary_choice","text":"May I?","required":true}`))
			return
		case "choose":
			e.park(id, p, abi.AskRadio, abi.Raw(`{"input_type":"radio","text":"Which?","required":true,"options":[{"id":"a","label":"A","value":"one","description":""},{"id":"b","label":"B","value":"two","description":""}]}`))
			return
		case "slow":
			select {
			case <-e.release:
			case <-ctx.Done():
				e.note("ended   %v", fault.CodeOf(context.Cause(ctx)))
				p.out.Failed(run.FailureRun)
				p.out.Ended(run.Info{})
				p.over()
				return
			}
		case "fail":
			p.out.Failed(run.FailureRun)
		case "model":
			p.out.Failed(run.FailureModel)
		case "cancel":
			p.over()
			return
		case "panic":
			panic("a secret")
		}
	}
	p.out.Ended(run.Info{})
	p.over()
}

func (e *engine) park(id string, p *played, kind string, prompt abi.Raw) {
	e.mu.Lock()
	e.open[id] = p
	p.attached = false
	p.pending = run.Interaction{Run: id, ID: id + "?" + fmt.Sprint(len(p.steps)), Kind: kind, Prompt: prompt, Owner: p.user}
	i, out := p.pending, p.out
	e.mu.Unlock()
	out.Asked(i)
}

func (e *engine) take(user, id, interaction string) (*played, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.open[id]
	if p == nil || p.user != user || p.pending.ID != interaction {
		return nil, fault.New(fault.NotFound, "no pending interaction with that id")
	}
	delete(e.open, id)
	return p, nil
}

func (e *engine) Perform(_ context.Context, user, id, interaction string, results []run.CallResult) error {
	p, err := e.take(user, id, interaction)
	if err != nil {
		return err
	}
	e.note("results %v", results)
	for _, r := range results {
		p.steps = append(p.steps, "say got "+strings.ReplaceAll(r.Text, ";", ",")+".")
	}
	go e.play(context.Background(), id, p)
	return nil
}

func (e *engine) Say(_ context.Context, user, id, interaction, text string, agreed bool) error {
	p, err := e.take(user, id, interaction)
	if err != nil {
		return err
	}
	e.note("said    %q agreed=%v", text, agreed)
	p.steps = append(p.steps, fmt.Sprintf("say agreed %v.", agreed))
	go e.play(context.Background(), id, p)
	return nil
}

func (e *engine) Attach(_ context.Context, user, id string, out run.Observer, over func()) (run.Interaction, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.open[id]
	if p == nil || p.user != user {
		return run.Interaction{}, fault.New(fault.NotFound, "no pending interaction with that id")
	}
	if p.attached {
		return run.Interaction{}, fault.New(fault.NotFound, "no pending interaction with that id")
	}
	p.attached = true
	e.attached++
	p.out, p.over = out, over
	return p.pending, nil
}

func (e *engine) Abandon(user, id string) {
	e.mu.Lock()
	p := e.open[id]
	if p != nil && p.user == user {
		delete(e.open, id)
	}
	e.mu.Unlock()
	if p != nil && p.user == user {
		e.note("abandon")
		p.over()
	}
}

// values is a real store.
type values struct{ store.Store }

func (v values) Get(ctx context.Context, key string) ([]byte, error) {
	found, err := v.Store.Get(ctx, key)
	return found.Data, err
}

func (v values) Put(ctx context.Context, key string, data []byte, ttl time.Duration) error {
	_, err := v.Store.Put(ctx, key, data, store.Any, ttl)
	return err
}

func (v values) Delete(ctx context.Context, key string) error {
	return v.Store.Delete(ctx, key, store.Any)
}

// counter is a source of ids that repeats itself in every test.
func counter() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("id-%d", n)
	}
}

var testTools = []run.Tool{{Name: "a", Description: "does a"}, {Name: "b", Description: "does b"}}

func newHandler(t testing.TB, e *engine, edit func(*Options)) *Handler {
	t.Helper()
	return newHandlerOn(t, e, memory.New(memory.Options{}), edit)
}

func newHandlerOn(t testing.TB, e *engine, s store.Store, edit func(*Options)) *Handler {
	t.Helper()
	opts := Options{Name: "tester", Version: "1.2.3", Model: "m", Tools: testTools, AnswerTimeout: 20 * time.Second, NewID: counter()}
	if edit != nil {
		edit(&opts)
	}
	h, err := New(Deps{Runner: e, Answers: e, Values: values{s}, Sessions: values{s}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Drain()
		h.Wait(context.Background())
	})
	return h
}

func as(user string) Caller {
	return Caller{Request: run.Request{Principal: run.Principal{UserID: user}}}
}

// ask sends a request and returns the reply's members.
func ask(t testing.TB, h *Handler, c Caller, body string) map[string]any {
	t.Helper()
	r, err := h.answer(t.Context(), c, []byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	var m map[string]any
	if err := json.Unmarshal(h.encode(r, 0), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// said is the reply's action and text.
func said(m map[string]any) string {
	out := fmt.Sprint(m["action"])
	for _, name := range []string{"tool_name", "tool_names", "summary", "prompt", "message"} {
		if v, ok := m[name]; ok {
			out += fmt.Sprintf(" %v", v)
		}
	}
	return out
}

func raw(t testing.TB, m map[string]any) string {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func sorted(m map[string]any) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
