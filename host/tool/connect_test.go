package tool

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"weir/host/fault"
)

// 5.1: all pages are listed; 5.3: sorted, described, named for steps; what is
// not included does not exist.
func TestRegistry(t *testing.T) {
	eachEra(t, func(t *testing.T, versions []string) {
		var tools []fixtureTool
		for i := range 7 { // four pages
			tools = append(tools, readOnly(fmt.Sprintf("t%d", i), anySchema, echo))
		}
		tools = append(tools, fixtureTool{name: "write", schema: `{"type":"object","properties":{"user":{}}}`,
			annotations: &mcp.ToolAnnotations{DestructiveHint: new(true)}, call: echo})
		f := serve(t, versions, tools...)
		opts := f.options()
		opts.Include = []string{"t6", "t0", "t3"}
		opts.Overrides = map[string]Override{"t3": {Description: "ours"}}
		c := connect(t, opts)
		var got []string
		for _, tool := range c.Tools() {
			got = append(got, tool.Name+" "+tool.StepName+" "+tool.Description)
		}
		want := "t0 grp__t0 does t0|t3 grp__t3 ours|t6 grp__t6 does t6"
		if strings.Join(got, "|") != want {
			t.Errorf("tools = %v, want %s", got, want)
		}
		if c.Tools()[1].Published != "does t3" {
			t.Errorf("Published = %q", c.Tools()[1].Published)
		}
		for _, name := range []string{"write", "t1", "T0", "t0 ", "", "a\nb" + strings.Repeat("c", 100)} {
			if _, _, err := c.Parse(name, `{}`); err == nil || err.Error() != "tool "+quote(name)+" is not available" {
				t.Errorf("Parse(%q) = %v", name, err)
			}
		}
	})
}

// 5.1, 5.3: what refuses the start names the tool and comes without a retry.
func TestStartRefusals(t *testing.T) {
	good := readOnly("good", anySchema, echo)
	marked := func(a *mcp.ToolAnnotations) fixtureTool {
		return fixtureTool{name: "marked", schema: anySchema, annotations: a, call: echo}
	}
	for name, tc := range map[string]struct {
		tools  []fixtureTool
		change func(*Options)
		want   string
	}{
		"not offered":   {[]fixtureTool{good}, func(o *Options) { o.Include = append(o.Include, "gone") }, `tool "gone": included, but the server does not offer it`},
		"not read-only": {[]fixtureTool{good, marked(&mcp.ToolAnnotations{})}, nil, `tool "marked": the server marks it readOnlyHint=false`},
		"destructive":   {[]fixtureTool{marked(&mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: new(true)})}, nil, `tool "marked": the server marks it destructiveHint=true`},
		"schema":        {[]fixtureTool{readOnly("deep", `{"type":"object","properties":{"a":{"type":"array"}}}`, echo)}, nil, `tool "deep": schema: property "a": keyword "type": "array" is not supported`},
		"override":      {[]fixtureTool{good}, func(o *Options) { o.Overrides = map[string]Override{"other": {"x"}} }, `tool: overrides: tool "other" is not included`},
		"empty":         {[]fixtureTool{good}, func(o *Options) { o.Overrides = map[string]Override{"good": {}} }, `tool: overrides: tool "good": description is empty`},
		"twice":         {[]fixtureTool{good}, func(o *Options) { o.Include = []string{"good", "good"} }, `got "good"`},
		"none":          {[]fixtureTool{good}, func(o *Options) { o.Include = nil }, "expected at least one tool name"},
		"no key":        {[]fixtureTool{good}, func(o *Options) { o.Key = "" }, "tool: key: expected a non-empty key"},
		"no URL":        {[]fixtureTool{good}, func(o *Options) { o.URL = "mcp-server:8080/mcp" }, "tool: url: expected an absolute http or https URL"},
		"credentials":   {[]fixtureTool{good}, func(o *Options) { o.URL = "http://user:secret@127.0.0.1/mcp" }, "tool: url: expected no user name or password"},
		"wrong key":     {[]fixtureTool{good}, func(o *Options) { o.Key = "other" }, "tool: connect: the server answered 401 and does not accept the key"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, eras()["sessions"], tc.tools...)
			opts := f.options()
			opts.Attempts, opts.RetryDelay = 15, time.Hour
			if tc.change != nil {
				tc.change(&opts)
			}
			c, err := Connect(t.Context(), opts)
			if err == nil {
				_ = c.Close()
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, want %q in it", err, tc.want)
			}
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("%q tells too much", err)
			}
		})
	}
}

// 5.1: a server that does not answer is tried again, so many times and no more.
func TestConnectRetries(t *testing.T) {
	f := serve(t, eras()["sessions"], readOnly("echo", anySchema, echo))
	var down atomic.Int64
	f.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if down.Load() <= 0 {
			return false
		}
		if body := r.Header.Get(headerVersion); body == "" { // initialize ends an attempt
			down.Add(-1)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	opts := f.options()
	opts.Attempts = 16
	down.Store(15)
	connect(t, opts)
	down.Store(1 << 30)
	opts.Attempts = 3
	_, err := Connect(t.Context(), opts)
	if err == nil || fault.Of(err) != fault.Unavailable || err.Error() != "tool: connect: the server answered 503" {
		t.Errorf("err = %v", err)
	}
	if n := int64(1<<30) - down.Load(); n != 3 {
		t.Errorf("%d attempts, want 3", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	opts.RetryDelay = time.Hour
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := Connect(ctx, opts); err == nil {
		t.Error("a cancelled start succeeded")
	}
}

// Servers of the session era that answer server/discover with a page of text,
// as several do, are initialised on the same attempt.
func TestServerThatRefusesDiscovery(t *testing.T) {
	for _, status := range []int{http.StatusUnprocessableEntity, http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed} {
		f := serve(t, eras()["sessions"], readOnly("echo", anySchema, echo))
		f.answer(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Mcp-Method") != "server/discover" {
				return false
			}
			http.Error(w, "Unexpected message, expect initialize request", status)
			return true
		})
		c := connect(t, f.options())
		if text, failed := call(t, c, "echo", `{"n":1}`); failed || text != `{"n":1}` {
			t.Errorf("%d: %q, %v", status, text, failed)
		}
	}
}

// After initialize every request of a session names the negotiated version.
func TestVersionHeader(t *testing.T) {
	eachEra(t, func(t *testing.T, versions []string) {
		f := serve(t, versions, readOnly("echo", anySchema, echo))
		c := connect(t, f.options())
		var bad atomic.Int64
		f.answer(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get(headerVersion) != versions[0] {
				bad.Add(1)
			}
			if (r.Header.Get(headerSession) == "") != (versions[0] == stateless) {
				bad.Add(1)
			}
			return false
		})
		call(t, c, "echo", `{}`)
		if bad.Load() != 0 {
			t.Errorf("%d requests without the version or the session of their era", bad.Load())
		}
	})
}

// FAULTS M6: a changed description or schema is another tool; the order of keys
// and an override are not.
func TestDigest(t *testing.T) {
	base := Tool{Name: "t", Published: "p", Description: "ours", Schema: []byte(`{"type":"object","title":"x"}`), ReadOnly: true}
	same := base
	same.Description, same.StepName, same.Schema = "other", "g__t", []byte(`{ "title":"x", "type":"object" }`)
	if Digest(base) != Digest(same) || len(Digest(base)) != 64 {
		t.Error("the same tool has two digests")
	}
	for i, change := range []func(*Tool){
		func(t *Tool) { t.Name = "u" },
		func(t *Tool) { t.Published = "q" },
		func(t *Tool) { t.Schema = []byte(`{"type":"object","title":"y"}`) },
		func(t *Tool) { t.ReadOnly = false },
	} {
		other := base
		change(&other)
		if Digest(base) == Digest(other) {
			t.Errorf("change %d keeps the digest", i)
		}
	}
}
