package guest

import (
	"errors"
	"strings"
	"testing"

	"weir/abi"
	"weir/pdk/spare"
)

func TestRegisterRefuses(t *testing.T) {
	ok := func(*abi.CheckInputRequest) (*abi.Verdict, error) {
		return &abi.Verdict{Verdict: abi.VerdictAllow}, nil
	}
	registered = nil
	defer func() { registered = nil }()
	Register(abi.HookCheckInput, ok, nil)
	for name, register := range map[string]func(){
		"pdk: check_input: registered twice": func() { Register(abi.HookCheckInput, ok, nil) },
		"pdk: step: nil handler":             func() { Register[abi.StepRequest, abi.StepReply](abi.HookStep, nil, nil) },
	} {
		func() {
			defer func() {
				if got := recover(); got != name {
					t.Errorf("panic %v, want %s", got, name)
				}
			}()
			register()
		}()
	}
}

func TestInvoke(t *testing.T) {
	registered = nil
	defer func() { registered = nil }()
	Register(abi.HookCheckInput, func(q *abi.CheckInputRequest) (*abi.Verdict, error) {
		switch q.Text {
		case "error":
			return nil, errors.New("bad day")
		case "nothing":
			return nil, nil
		}
		return &abi.Verdict{Verdict: abi.VerdictAllow}, nil
	}, nil)
	for _, tt := range []struct {
		hook                abi.Hook
		request, reply, err string
	}{
		{abi.HookCheckInput, `{"now":0,"seed":"","text":"","history":[]}`, `>{"verdict":"allow"}`, ""},
		{abi.HookCheckInput, `{"now":0,"seed":"","text":"error","history":[]}`, "", "check_input: bad day"},
		{abi.HookCheckInput, `{"now":0,"seed":"","text":"nothing","history":[]}`, "", "check_input: the handler returned neither a reply nor an error"},
		{abi.HookCheckInput, `{}`, "", `check_input: read the request: missing field "now"`},
		{abi.HookStep, `{}`, "", "step: no handler is registered"},
	} {
		reply, err := Invoke([]byte(">"), tt.hook, []byte(tt.request))
		if got := text(err); string(reply) != tt.reply || got != tt.err {
			t.Errorf("Invoke(%s, %s) = %s, %s; want %s, %s", tt.hook, tt.request, reply, got, tt.reply, tt.err)
		}
	}
}

// What a handler keeps of a request stays as it is: the bytes of a request are
// used once, and so is a spare request.
func TestBuffers(t *testing.T) {
	registered, requestBuffer, room, replyBuffer = nil, nil, nil, nil
	defer func() { registered = nil }()
	var kept []*abi.CheckInputRequest
	Register(abi.HookCheckInput, func(q *abi.CheckInputRequest) (*abi.Verdict, error) {
		kept = append(kept, q)
		return &abi.Verdict{Verdict: abi.VerdictBlock, Message: q.Text}, nil
	}, func(q *abi.CheckInputRequest) { q.Roles = []string{"left over"} })
	registered[0].settle()
	serve := func(text string) {
		t.Helper()
		request := `{"now":0,"seed":"","text":"` + text + `","history":[]}`
		b := Alloc(len(request))
		copy(b, request)
		reply, err := Serve(abi.HookCheckInput, len(request))
		if want := `{"verdict":"block","message":"` + text + `"}`; err != nil || string(reply) != want {
			t.Fatalf("reply %.80s, %v, want %.80s", reply, err, want)
		}
	}
	var texts []string
	for i := range 3 * spare.Enough { // more than there are spare ones
		texts = append(texts, strings.Repeat(string(rune('a'+i%26)), 1+i*i*i)) // and than the room has
		serve(texts[i])
	}
	for i, q := range kept {
		if q.Text != texts[i] || q.Roles != nil {
			t.Fatalf("request %d has become %.80s, roles %q", i, q.Text, q.Roles)
		}
	}
	if n := len(Alloc(0)); n != 0 {
		t.Errorf("Alloc(0) has %d bytes", n)
	}
	if n := len(Alloc(minRoom + 1)); n != minRoom+1 {
		t.Errorf("Alloc(%d) has %d bytes", minRoom+1, n)
	}
	if _, err := Serve(abi.HookCheckInput, minRoom+2); err == nil {
		t.Error("a request longer than the room is served")
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
