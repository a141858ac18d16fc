package step_test

import (
	"fmt"

	"weir/abi"
	"weir/pdk"
	"weir/pdk/step"
)

func init() {
	step.Handle(func(q *abi.StepRequest) (*abi.StepReply, error) {
		switch q.Event.Type {
		case abi.EventStart:
			ask := &abi.ModelRequest{Model: abi.ModelAgent, Stream: true}
			for i := range q.Event.Turns {
				ask.Messages = append(ask.Messages, abi.Message{Turn: i + 1})
			}
			return &abi.StepReply{Action: abi.Action{Type: abi.ActionModel, Request: ask}}, nil
		case abi.EventModel:
			return &abi.StepReply{Action: abi.Action{Type: abi.ActionFinish}}, nil
		}
		return &abi.StepReply{Action: abi.Action{Type: abi.ActionFail, Reason: "unexpected " + q.Event.Type}}, nil
	})
}

func ExampleHandle() {
	reply, err := pdk.Invoke(abi.HookStep, []byte(`{"now":0,"seed":"0","event":{"type":"model_failed","tool_calls_left":8,"model_calls_left":8,"code":"timeout"}}`))
	fmt.Println(string(reply), err)
	// Output: {"action":{"type":"fail","reason":"unexpected model_failed"}} <nil>
}
