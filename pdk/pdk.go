package pdk

import (
	"errors"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/pdk/internal/guest"
)

// What the plugin said of itself, and how it reads its configuration. Both are
// set in the plugin's init and only read afterwards.
var (
	description *abi.Description
	configured  func(*abi.ConfigureRequest) (*abi.ConfigureReply, error)
)

func init() {
	guest.Register(abi.HookDescribe, onDescribe, nil)
	guest.Register(abi.HookConfigure, onConfigure, nil)
}

// Describe says what the plugin is. It is called once, in the plugin's init. A
// zero ABI becomes [abi.Version]; an empty Kind is found by the hooks that have
// a handler: a workflow has step, a guardrail any of the checks.
func Describe(d abi.Description) {
	if description != nil {
		panic("pdk: Describe: called twice")
	}
	description = &d
}

// Configure makes f the plugin's configure, which the host calls once before
// any other call of an instance, with the operator's configuration and the
// prompts. What f keeps in package variables is there in every later call. Rely
// on nothing else to be there: the host may put an instance back to this moment
// after any call, and any instance may serve any call. A mistake of the
// operator is [abi.ConfigureReply.Error]; an error of f is a failure of the
// plugin. Without Configure the plugin takes no configuration: anything but {} is such
// a mistake.
func Configure(f func(*abi.ConfigureRequest) (*abi.ConfigureReply, error)) {
	if f == nil || configured != nil {
		panic("pdk: Configure: called twice, or with nil")
	}
	configured = f
}

// Log hands a line to the host, at one of the levels abi.LogDebug to
// abi.LogError. The host counts and drops it unless the operator asked for the
// plugin's log; it never reaches a user. Natively it does nothing.
func Log(level int, text string) { guest.Log(level, text) }

// Invoke runs a hook's handler natively, with the same reading and writing as
// in a module and the same check of the reply as in the host: what a plugin's
// own tests call. The reply is the caller's.
func Invoke(hook abi.Hook, request []byte) ([]byte, error) {
	reply, err := guest.Invoke(nil, hook, request)
	if err != nil {
		return nil, err
	}
	if err := abi.ValidateReply(hook, request, reply); err != nil {
		return nil, errors.New(string(hook) + ": the host would refuse the reply: " + err.Error())
	}
	return reply, nil
}

func onDescribe(*abi.DescribeRequest) (*abi.Description, error) {
	if description == nil {
		return nil, errors.New("the plugin never called pdk.Describe")
	}
	d := *description
	if d.ABI == 0 {
		d.ABI = abi.Version
	}
	if d.Kind == "" {
		d.Kind = kind()
	}
	return &d, nil
}

func kind() string {
	if guest.Has(abi.HookStep) {
		return abi.KindWorkflow
	}
	return abi.KindGuardrail
}

func onConfigure(q *abi.ConfigureRequest) (*abi.ConfigureReply, error) {
	if configured != nil {
		return configured(q)
	}
	d := strictjson.NewDecoder(q.Config)
	if err := d.Object(func(name string) error { return strictjson.Unknown(name) }); err != nil {
		return &abi.ConfigureReply{Error: "expected no configuration: " + err.Error()}, nil
	}
	return &abi.ConfigureReply{}, nil
}
