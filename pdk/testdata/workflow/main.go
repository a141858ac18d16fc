// Command workflow asks the model once and streams what it says.
package main

import (
	"weir/abi"
	"weir/pdk"
	"weir/pdk/step"
)

func init() {
	pdk.Describe(abi.Description{Name: "workflow", Version: "0.1.0"})
	step.Handle(func(q *abi.StepRequest) (*abi.StepReply, error) {
		if q.Event.Type != abi.EventStart {
			return &abi.StepReply{Action: abi.Action{Type: abi.ActionFinish}}, nil
		}
		return &abi.StepReply{State: abi.Raw(`{"asked":true}`), Action: abi.Action{Type: abi.ActionModel, Request: &abi.ModelRequest{
			Model: abi.ModelAgent, Messages: []abi.Message{{Turn: 1}}, Stream: true}}}, nil
	})
}

func main() {}
