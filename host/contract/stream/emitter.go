package stream

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/run"
)

// emitter turns what a run shows into blocks, in the order of 2.8. It sees to
// what must hold for every stream, whatever the run does: nothing before
// WORKFLOW_START or after WORKFLOW_END, at most one error block, no answer
// after it. Sending blocks while the client does not read, and does nothing
// once the client has left.
type emitter struct {
	blocks   chan []byte // closed by close
	client   context.Context
	filter   stepFilter
	workflow string
	request  run.Info // for a run that never says its own names

	mu    sync.Mutex
	phase phase
	info  run.Info
	place string // where the stream is behind what is sent next; empty without ids
}

type phase uint8

const (
	waiting phase = iota
	running
	failed
	ended
)

// backlog is how many blocks may wait for the writer (2.4).
const backlog = 64

func newEmitter(client context.Context, filter stepFilter, workflow string, request run.Info) *emitter {
	return &emitter{blocks: make(chan []byte, backlog), client: client, filter: filter, workflow: workflow, request: request}
}

// Started implements [run.Observer].
func (e *emitter) Started(info run.Info) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.start(info)
}

func (e *emitter) start(info run.Info) {
	if e.phase != waiting {
		return
	}
	e.phase, e.info = running, info
	e.send(nil) // the writer may send keep-alives from now on
	e.step(stepEvent{Type: workflowStart, ID: info.StepID, Name: e.workflow, Provided: providedBy(info)})
}

// Step implements [run.Observer].
func (e *emitter) Step(s run.Step) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.phase == running {
		e.step(stepEvent{Type: typeOf(s), ID: s.ID, Parent: e.info.StepID, Name: s.Name, Input: s.Input, Output: s.Output})
	}
}

// Text implements [run.Observer].
func (e *emitter) Text(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.phase != running {
		return
	}
	blocks := encodeAnswer(text)
	place := e.place
	e.place = ""
	for i, block := range blocks {
		if i == len(blocks)-1 { // a client that comes back has all of them or none
			e.place = place
		}
		e.send(block)
	}
}

// Asked implements [run.Observer].
func (e *emitter) Asked(i run.Interaction) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.phase == running {
		e.send(encodeInteraction(i))
	}
}

// At implements [run.Follower]. The place stands in the next block's id line.
func (e *emitter) At(place string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.place = place
}

// Continued implements [run.Follower].
func (e *emitter) Continued(info run.Info) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.phase == waiting {
		e.phase, e.info = running, info
		e.send(nil)
	}
}

// Gap implements [run.Follower]: a function step that no run has says why
// events are missing.
func (e *emitter) Gap(reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.step(stepEvent{Type: functionEnd, ID: uuid.NewString(), Parent: e.info.StepID, Name: "events_missing",
		Input: abi.Raw("{}"), Output: strictjson.AppendString(nil, reason)})
}

// Failed implements [run.Observer].
func (e *emitter) Failed(f run.Failure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail(f)
}

func (e *emitter) fail(f run.Failure) {
	if e.phase != running {
		return
	}
	e.phase = failed
	e.send(encodeError(failureText(f)))
}

// Ended implements [run.Observer].
func (e *emitter) Ended(run.Info) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end()
}

func (e *emitter) end() {
	if e.phase != running && e.phase != failed {
		return
	}
	e.step(stepEvent{Type: workflowEnd, ID: e.info.StepID, Name: e.workflow, Provided: providedBy(e.info)})
	e.phase = ended
}

// close ends the stream. A run that showed no end has failed; one that is only
// followed may just go on elsewhere.
func (e *emitter) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.request.RunID == "" {
		close(e.blocks)
		return
	}
	e.request.StepID = uuid.NewString()
	e.start(e.request)
	if e.phase == running {
		e.fail(run.FailureRun)
	}
	e.end()
	close(e.blocks)
}

func (e *emitter) step(s stepEvent) {
	if e.filter.passes(s.Type) {
		e.send(encodeStep(s))
	}
}

// send waits for room. Blocks of one client stay in order, since the caller
// holds the lock meanwhile.
func (e *emitter) send(block []byte) {
	if e.client.Err() != nil {
		return
	}
	if e.place != "" && block != nil {
		block = append([]byte("id: "+e.place+"\n"), block...)
		e.place = ""
	}
	select {
	case e.blocks <- block:
	case <-e.client.Done():
	}
}
