package plugin

import (
	"context"

	"weir/abi"
)

// develop makes the image of a configured instance. Warm is better: what a
// first call does once, every call from a cold image does again, and a call
// whose memory grows costs its instance. But a guest may die of being warmed,
// or grow in every call, and then the image is what it was before, which is told.
func (p *Plugin) develop(ctx context.Context, i *instance, warmers []abi.Case) (img *image, warm bool, err error) {
	cold, err := i.capture()
	if err != nil {
		return nil, false, err
	}
	if _, ok := p.warm(ctx, i, warmers); !ok {
		return cold, false, nil
	}
	img, err = i.capture()
	if err != nil {
		cold.memory.free()
		return nil, false, err
	}
	if img.memory.size() > cold.memory.size() && p.stillGrows(ctx, img, warmers) {
		img.memory.free()
		return cold, false, nil
	}
	cold.memory.free()
	return img, true, nil
}

func (p *Plugin) stillGrows(ctx context.Context, img *image, warmers []abi.Case) bool {
	i, err := p.instantiate(img)
	if err != nil {
		return true
	}
	defer i.close()
	grown, ok := p.warm(ctx, i, warmers)
	return grown || !ok
}

// warm makes calls on an instance and tells whether its memory grew. It is not
// ok when the instance is of no more use. What the calls answer is for the
// self-check to judge.
func (p *Plugin) warm(ctx context.Context, i *instance, warmers []abi.Case) (grown, ok bool) {
	log := i.session.printer.log
	i.session.printer.log = new(printed)
	defer func() { i.session.printer.log = log }()
	for _, c := range warmers {
		st, err := stampIn(c.Request)
		if err != nil {
			continue
		}
		if _, _, err := i.call(ctx, c.Hook, p.bounds(c.Hook, st, len(c.Request)), c.Request, nil); err != nil {
			return false, false
		}
		i.session.printer.end()
		grown = grown || i.memory.grown
		i.reset(p.runtime.resetter) // does nothing before there is an image
	}
	return grown, true
}

// warmers lists the calls that warm an instance up: the cases that the module
// ships, or else the plainest request for each hook.
func (p *Plugin) warmers(cases []abi.Case) []abi.Case {
	if len(cases) > 0 {
		return cases
	}
	call := setupCall()
	plain := map[abi.Hook]request{
		abi.HookCheckInput:      &abi.CheckInputRequest{Call: call, Text: "hello"},
		abi.HookCheckOutput:     &abi.CheckOutputRequest{Call: call, Text: "hello", Final: true},
		abi.HookCheckToolCall:   &abi.CheckToolCallRequest{Call: call, Tool: "tool", Arguments: abi.Raw("{}")},
		abi.HookCheckToolResult: &abi.CheckToolResultRequest{Call: call, Tool: "tool", Arguments: abi.Raw("{}"), Result: "hello"},
		abi.HookStep: &abi.StepRequest{Call: call, Event: abi.Event{Type: abi.EventStart, ToolCallsLeft: 1, ModelCallsLeft: 1,
			Turns: []abi.Turn{{Role: abi.RoleUser, Content: "hello"}}}},
	}
	for _, hook := range abi.Hooks() {
		if req, ok := plain[hook]; ok && p.Has(hook) {
			cases = append(cases, abi.Case{Hook: hook, Request: req.AppendJSON(nil)})
		}
	}
	return cases
}
