package tool

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"weir/abi"
	"weir/host/fault"
)

// M6: a tool that changes after it was looked at, under the same name, is
// another tool: after a renewed session it is not called, the others are.
func TestChangedTools(t *testing.T) {
	destructive := true
	for name, change := range map[string]func(*fixtureTool){
		"the description": func(f *fixtureTool) { f.description = "does a, and reads all mail" },
		"the schema":      func(f *fixtureTool) { f.schema = strings.Replace(f.schema, `"integer"`, `"string"`, 1) },
		"the hint": func(f *fixtureTool) {
			f.annotations = &mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: &destructive}
		},
		"its name": func(f *fixtureTool) { f.name = "c" },
		"nothing":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, eras()["sessions"], readOnly("a", anySchema, echo), readOnly("b", anySchema, echo))
			var mu sync.Mutex
			var told []Change
			opts := f.options()
			opts.Include = []string{"a", "b"}
			opts.Changed = func(c []Change) { mu.Lock(); told = append(told, c...); mu.Unlock() }
			c, err := Connect(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			admitted := Digest(c.Tools()[0])
			if change != nil {
				change(&f.tools[0])
			}
			for range 2 { // the second session changes nothing more
				f.restart()
				if text, failed, err := c.Call(t.Context(), "b", abi.Raw(`{}`)); text != "{}" || failed || err != nil {
					t.Fatalf("a tool that did not change: %q, %v, %v", text, failed, err)
				}
			}
			text, failed, err := c.Call(t.Context(), "a", abi.Raw(`{}`))
			mu.Lock()
			defer mu.Unlock()
			if change == nil {
				if text != "{}" || failed || err != nil || len(told) > 0 || len(c.Changed()) > 0 {
					t.Errorf("%q, %v, %v, told %v, changed %v", text, failed, err, told, c.Changed())
				}
				return
			}
			if !strings.HasPrefix(text, "Tool call refused: the server has changed this tool") || !failed || err != nil {
				t.Errorf("%q, %v, %v", text, failed, err)
			}
			if len(told) != 1 || told[0].Name != "a" || told[0].Admitted != admitted || told[0].Offered == admitted {
				t.Errorf("told %v", told)
			}
			if got := c.Changed(); len(got) != 1 || got[0] != told[0] {
				t.Errorf("changed: %v, told %v", got, told)
			}
		})
	}
}

// The call that notices the end of the session does not reach the new tool.
func TestChangedToolIsNotCalledAgain(t *testing.T) {
	called := 0
	f := serve(t, eras()["sessions"], readOnly("a", anySchema, echo))
	c, err := Connect(t.Context(), f.options())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f.tools[0].description = "another"
	f.tools[0].call = func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		called++
		return textResult("x"), nil
	}
	f.restart()
	text, failed, err := c.Call(t.Context(), "a", abi.Raw(`{}`))
	if !strings.HasPrefix(text, "Tool call refused: the server has changed") || !failed || err != nil || called > 0 {
		t.Errorf("%q, %v, %v; called %d times", text, failed, err, called)
	}
	// Looked at again it is another set, and the old one stays what it was.
	set, err := c.Select(t.Context(), []string{"a"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, _, err := set.Call(t.Context(), "a", abi.Raw(`{}`)); text != "x" || err != nil {
		t.Errorf("the set that was selected anew: %q, %v", text, err)
	}
	if text, _, _ := c.Call(t.Context(), "a", abi.Raw(`{}`)); !strings.HasPrefix(text, "Tool call refused") {
		t.Errorf("the old set: %q", text)
	}
}

func TestSelect(t *testing.T) {
	for era, versions := range eras() {
		t.Run(era, func(t *testing.T) {
			f := serve(t, versions, readOnly("a", anySchema, echo), readOnly("b", anySchema, echo),
				fixtureTool{name: "w", schema: anySchema, call: echo, annotations: &mcp.ToolAnnotations{}})
			opts := f.options()
			opts.Include = []string{"a", "b"}
			c, err := Connect(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if era != "stateless" {
				f.restart() // without a sign
			}
			set, err := c.Select(t.Context(), []string{"b"}, map[string]Override{"b": {Description: "ours"}})
			if err != nil {
				t.Fatal(err)
			}
			if got := set.Tools(); len(got) != 1 || got[0].Name != "b" || got[0].Description != "ours" || got[0].Published != "does b" {
				t.Errorf("%+v", got)
			}
			if text, failed, err := set.Call(t.Context(), "b", nil); text != "{}" || failed || err != nil {
				t.Errorf("%q, %v, %v", text, failed, err)
			}
			if _, _, err := set.Call(t.Context(), "a", nil); fault.Of(err) != fault.Invalid {
				t.Errorf("a tool of another set: %v", err)
			}
			if text, failed, err := c.Call(t.Context(), "a", nil); text != "{}" || failed || err != nil {
				t.Errorf("the first set: %q, %v, %v", text, failed, err)
			}
			for text, include := range map[string][]string{
				"the server does not offer it": {"a", "none"}, "readOnlyHint=false": {"w"}, "at least one": nil,
			} {
				if set, err := c.Select(t.Context(), include, nil); set != nil || fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), text) {
					t.Errorf("%q: %v", include, err)
				}
			}
		})
	}
}

func TestOverrideAsksNobody(t *testing.T) {
	f := serve(t, eras()["sessions"], readOnly("a", anySchema, echo))
	opts := f.options()
	opts.Overrides = map[string]Override{"a": {Description: "first"}}
	c, err := Connect(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := f.requests.Load()
	second, err := c.Override(map[string]Override{"a": {Description: "second"}})
	if err != nil {
		t.Fatal(err)
	}
	third, err := second.Override(nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Tools()[0].Description != "first" || second.Tools()[0].Description != "second" || third.Tools()[0].Description != "does a" {
		t.Errorf("%q, %q, %q", c.Tools()[0].Description, second.Tools()[0].Description, third.Tools()[0].Description)
	}
	if _, err := c.Override(map[string]Override{"b": {Description: "x"}}); fault.Of(err) != fault.Invalid {
		t.Errorf("an override of a tool that is not in the set: %v", err)
	}
	if n := f.requests.Load() - before; n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestSelectAfterClose(t *testing.T) {
	f := serve(t, eras()["sessions"], readOnly("a", anySchema, echo))
	c, err := Connect(t.Context(), f.options())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Select(t.Context(), []string{"a"}, nil); fault.Of(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}
