package stream

import (
	"weir/abi"
	"weir/host/run"
)

// Runtime is how this host names itself to consumers.
const Runtime = "weir"

// stepEvent is an intermediate_data block before it is encoded (2.6).
//
//	intermediate_data: {"id","parent_id","type","name","payload"}
//	payload: {"event_type","name","UUID","data"?,"metadata"}
type stepEvent struct {
	Type   stepType
	ID     string
	Parent string // empty for the workflow's own steps: null on the wire
	Name   string
	Input  abi.Raw
	Output abi.Raw // ends only

	Provided *provided // workflow steps only, in place of data
}

// provided is the metadata of both workflow steps.
type provided struct {
	TraceID    string
	RunID      string
	RequestID  string
	Generation string
	Variant    string // empty: there are none
}

func providedBy(info run.Info) *provided {
	return &provided{TraceID: info.TraceID, RunID: info.RunID, RequestID: info.RequestID, Generation: info.Generation, Variant: info.Variant}
}

// typeOf maps the engine's steps to the wire's types.
func typeOf(s run.Step) stepType {
	switch {
	case s.Kind == run.StepTool && s.End:
		return toolEnd
	case s.Kind == run.StepTool:
		return toolStart
	case s.End:
		return functionEnd
	}
	return functionStart
}
