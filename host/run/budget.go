package run

import "fmt"

// budget counts what a run may still do. The host counts, for every workflow
// alike (agent-service contract, 5.5): exactly Max tool calls are dispatched,
// and one model call more than that is made.
type budget struct {
	max        int // tool calls
	toolCalls  int
	modelCalls int
	steps      int
}

// maxCallsPerAction and stepsPerCall bound a workflow that would go round
// without spending its budget (calls of unknown tools are not counted).
const (
	maxCallsPerAction = 1024
	stepsPerCall      = 4
	stepsAtLeast      = 16
)

func (b *budget) toolCallsLeft() int  { return max(0, b.max-b.toolCalls) }
func (b *budget) modelCallsLeft() int { return max(0, b.max+1-b.modelCalls) }

// takeToolCall spends one call and reports whether it was there to spend.
func (b *budget) takeToolCall() bool {
	b.toolCalls++
	return b.toolCalls <= b.max
}

// takeModelCall spends one model call and reports whether it was there.
func (b *budget) takeModelCall() bool {
	b.modelCalls++
	return b.modelCalls <= b.max+1
}

// takeStep reports false when the workflow has gone round too often.
func (b *budget) takeStep() bool {
	b.steps++
	return b.steps <= stepsAtLeast+stepsPerCall*(b.max+1)
}

// exhausted is what a model is told of a call over the budget.
func (b *budget) exhausted() string {
	return fmt.Sprintf("the budget of %d tool calls is exhausted; answer with what you have", b.max)
}
