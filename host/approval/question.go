package approval

import (
	"errors"
	"strings"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
)

// Question makes the prompt of a workflow's ask. A radio question gets an
// option that cancels, unless it has one. What a workflow may not ask is an
// error of kind fault.Plugin. Texts and Marks have to pass the output guards
// before the prompt is shown.
func Question(ask *abi.AskHuman) (*Prompt, error) {
	p := &Prompt{Kind: Kind(ask.Kind), Text: ask.Text, Placeholder: ask.Placeholder}
	cancels := false
	for _, o := range ask.Options {
		cancels = cancels || o.ID == CancelID && o.Value == CancelValue
		p.Options = append(p.Options, Option(o))
	}
	if p.Kind == KindRadio && !cancels && len(p.Options) > 0 {
		p.Options = append(p.Options, Option{ID: CancelID, Label: "Cancel", Value: CancelValue})
	}
	if err := p.check(); err != nil {
		return nil, fault.New(fault.Plugin, "ask: %w", err)
	}
	return p, nil
}

// CallQuestion makes the prompt of a guardrail's require_approval: a binary
// choice that shows the tool, its arguments as they will be sent, and the
// guard's message if there is one. Message has to pass the output guards
// before; arguments that one would change may not be shown, because what runs
// would not be what was approved.
func CallQuestion(tool string, arguments abi.Raw, message string) (*Prompt, error) {
	if len(arguments) == 0 {
		arguments = abi.Raw("{}")
	}
	compact, err := strictjson.Compact(nil, arguments)
	if err != nil {
		return nil, fault.New(fault.Invalid, "arguments: %w", err)
	}
	if message = strings.TrimSpace(message); message == "" {
		message = "A policy lets this call run only with your consent."
	}
	p := &Prompt{Kind: KindBinaryChoice, Text: message + "\nTool: " + tool + "\nArguments: " + string(compact)}
	if tool == "" {
		return nil, fault.New(fault.Invalid, "tool: %w", errors.New("empty"))
	}
	return p, within("prompt", p.check())
}
