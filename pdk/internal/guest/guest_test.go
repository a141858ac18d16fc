package guest

import (
	"errors"
	"testing"

	"weir/abi"
)

func TestRegisterRefuses(t *testing.T) {
	ok := func(*abi.CheckInputRequest) (*abi.Verdict, error) {
		return &abi.Verdict{Verdict: abi.VerdictAllow}, nil
	}
	registered = nil
	defer func() { registered = nil }()
	Register(abi.HookCheckInput, ok)
	for name, register := range map[string]func(){
		"pdk: check_input: registered twice": func() { Register(abi.HookCheckInput, ok) },
		"pdk: step: nil handler":             func() { Register[abi.StepRequest, abi.StepReply](abi.HookStep, nil) },
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
	})
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

func TestBuffers(t *testing.T) {
	registered, requestBuffer, replyBuffer = nil, nil, nil
	defer func() { registered = nil }()
	Register(abi.HookCheckInput, func(q *abi.CheckInputRequest) (*abi.Verdict, error) {
		return &abi.Verdict{Verdict: abi.VerdictBlock, Message: q.Text}, nil
	})
	serve := func(request, want string) *byte {
		t.Helper()
		b := Alloc(len(request))
		copy(b, request)
		reply, err := Serve(abi.HookCheckInput, len(request))
		if err != nil || string(reply) != want {
			t.Fatalf("reply %s, %v, want %s", reply, err, want)
		}
		return &b[0]
	}
	first := serve(`{"now":0,"seed":"","text":"a","history":[]}`, `{"verdict":"block","message":"a"}`)
	second := serve(`{"now":0,"seed":"","text":"bb","history":[]}`, `{"verdict":"block","message":"bb"}`)
	if first != second {
		t.Error("the second request got a new buffer")
	}
	if n := len(Alloc(0)); n != 0 {
		t.Errorf("Alloc(0) has %d bytes", n)
	}
	if n := len(Alloc(minBuffer + 1)); n != minBuffer+1 {
		t.Errorf("Alloc(%d) has %d bytes", minBuffer+1, n)
	}
	if _, err := Serve(abi.HookCheckInput, minBuffer+2); err == nil {
		t.Error("a request longer than the room is served")
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
