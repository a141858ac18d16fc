package run

import (
	"context"
	"errors"
	"strings"

	"weir/abi"
	"weir/host/fault"
	"weir/host/telemetry"
)

// errCut ends a model call whose answer has been cut.
var errCut = errors.New("the answer is cut")

// perform does what the workflow asked for. It returns the event that comes of
// it, or how the run ends.
func (r *run) perform(a abi.Action) (abi.Event, *ending) {
	switch a.Type {
	case abi.ActionModel:
		return r.performModel(a.Request)
	case abi.ActionTools:
		if r.req.Caller != nil {
			return r.proposeTools(a.Calls, nil)
		}
		return r.performTools(a.Calls, nil)
	case abi.ActionAsk:
		return r.performAsk(a.Ask)
	case abi.ActionAnswer:
		r.sink.Push(a.Text)
		return abi.Event{}, &ending{state: Completed}
	case abi.ActionFinish:
		return abi.Event{}, &ending{state: Completed}
	case abi.ActionFail:
		return abi.Event{}, r.failed(fault.New(fault.Plugin, "workflow %s: it gave up", r.policy.Workflow()))
	default:
		return abi.Event{}, r.failed(fault.New(fault.Plugin, "workflow %s: unknown action", r.policy.Workflow()))
	}
}

// performModel makes one model call, or tells the workflow once that it has
// none left.
func (r *run) performModel(req *abi.ModelRequest) (abi.Event, *ending) {
	if !r.budget.takeModelCall() {
		if r.budgetTold {
			return abi.Event{}, r.failed(fault.New(fault.Plugin,
				"workflow %s: a model call after it was told that none is left", r.policy.Workflow()))
		}
		r.budgetTold = true
		return abi.Event{Type: abi.EventModelFailed, Code: abi.FailBudget}, nil
	}
	call, err := r.modelCall(&r.thread, r.policy.Workflow(), req)
	if err != nil {
		return abi.Event{}, r.failed(err)
	}
	if past := r.replay(call); past != nil {
		return r.performPast(past, call)
	}
	reply, said, err := r.complete(call)
	r.note = note{Asked: call.Asked, Said: validLen(said)}
	if err != nil && said != "" {
		r.out.record(RecordSaid, saidPayload{Text: said}, false)
	}
	switch {
	case r.ctx.Err() != nil:
		return abi.Event{}, r.failed(r.ctx.Err())
	case r.isCut():
		r.note.Stopped = true
		r.hear(input{Event: abi.Event{Type: abi.EventModel}, Note: r.note})
		return abi.Event{}, &ending{state: Completed}
	case err != nil:
		r.opts.Logger.WarnContext(r.ctx, "a model call failed", "run", r.req.RunID, "alias", call.Alias, "code", failCode(err), "error", err)
		return abi.Event{Type: abi.EventModelFailed, Code: failCode(err)}, nil
	}
	r.note.Finish = knownFinish(reply.FinishReason)
	r.note.InputTokens, r.note.OutputTokens = reply.InputTokens, reply.OutputTokens
	return abi.Event{Type: abi.EventModel, Ref: r.thread.nextRef(), Text: reply.Text, ToolCalls: reply.ToolCalls}, nil
}

// complete calls the model. A streamed reply goes through the sink as it
// comes, and the call ends as soon as the answer is cut. Said is the text that
// went there.
func (r *run) complete(call *ModelCall) (reply *ModelReply, said string, err error) {
	ctx, span := r.opts.Tracer.StartChat(r.ctx, r.chatStart(call))
	if !call.Stream {
		reply, err := r.deps.Model.Complete(ctx, call, nil)
		span.End(chatEnd(reply, err))
		return reply, "", err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-r.sink.Cut():
			cancel(errCut)
		case <-done:
		}
	}()
	var all strings.Builder
	reply, err = r.deps.Model.Complete(ctx, call, func(text string) {
		span.FirstChunk()
		all.WriteString(text)
		r.sink.Push(text)
	})
	close(done)
	<-watching
	cancel(nil)
	span.End(chatEnd(reply, err))
	if syncErr := r.sink.Sync(r.ctx); syncErr != nil && err == nil {
		err = syncErr
	}
	return reply, all.String(), err
}

func (r *run) chatStart(call *ModelCall) telemetry.ChatStart {
	return telemetry.ChatStart{Model: r.deps.Model.Name(call.Alias), Stream: call.Stream,
		Temperature: call.Temperature, MaxTokens: call.MaxTokens}
}

func chatEnd(reply *ModelReply, err error) telemetry.ChatEnd {
	if err != nil {
		return telemetry.ChatEnd{Failure: failCode(err)}
	}
	return telemetry.ChatEnd{FinishReason: reply.FinishReason,
		InputTokens: reply.InputTokens, OutputTokens: reply.OutputTokens}
}

func (r *run) isCut() bool {
	select {
	case <-r.sink.Cut():
		return true
	default:
		return false
	}
}

// failCode is what a workflow is told of a model call that brought no reply.
func failCode(err error) string {
	switch code := fault.CodeOf(err); code {
	case abi.FailTimeout, abi.FailBadReply:
		return code
	default:
		return abi.FailUnavailable
	}
}

// ask performs a guard's ask_model verdict within ctx, which carries the guard
// chain's time-out. Whatever goes wrong is the model's failure, never the
// guard's.
func (r *run) ask(ctx context.Context, guard string, req *abi.ModelRequest) abi.AskReply {
	call, err := r.guardCall(guard, req)
	if err != nil {
		r.opts.Logger.ErrorContext(ctx, "a guard's model request cannot be sent", "plugin", guard, "error", err)
		return abi.AskReply{Failed: abi.FailBadReply}
	}
	ctx, span := r.opts.Tracer.StartGuardModelCall(ctx, r.chatStart(call))
	reply, err := r.deps.Model.Complete(ctx, call, nil)
	span.End(chatEnd(reply, err))
	if err == nil {
		r.asked(call, abi.AskReply{Text: reply.Text})
		return abi.AskReply{Text: reply.Text}
	}
	code := failCode(err)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = abi.FailTimeout
	}
	r.asked(call, abi.AskReply{Failed: code})
	r.opts.Logger.WarnContext(ctx, "a guardrail's model call failed", "run", r.req.RunID, "plugin", guard, "code", code, "error", err)
	return abi.AskReply{Failed: code}
}

// guardCall resolves a guard's request, which has no refs, no tools and no
// stream.
func (r *run) guardCall(guard string, req *abi.ModelRequest) (*ModelCall, error) {
	if req.Stream || req.Tools != nil {
		return nil, fault.New(fault.Plugin, "guard %s: model request: expected no stream and no tools", guard)
	}
	return r.modelCall(&thread{}, guard, req)
}

// modelCall resolves everything that a plugin's request names; refs and turns
// are those of t.
func (r *run) modelCall(t *thread, plugin string, req *abi.ModelRequest) (*ModelCall, error) {
	messages, err := r.messages(t, plugin, req)
	if err != nil {
		return nil, err
	}
	tools, err := r.toolSet(req.Tools)
	if err != nil {
		return nil, err
	}
	return &ModelCall{Alias: req.Model, Plugin: plugin, Asked: r.askedDigest(plugin, req, tools), Messages: messages, Tools: tools,
		Temperature: req.Temperature, MaxTokens: req.MaxTokens, Stream: req.Stream}, nil
}

func (r *run) messages(t *thread, plugin string, req *abi.ModelRequest) ([]abi.Message, error) {
	if req.Prompt == nil {
		return t.resolve(req.Messages)
	}
	text, ok := r.policy.Prompt(plugin, req.Prompt.Name)
	if !ok {
		return nil, fault.New(fault.Plugin, "plugin %s: it has no prompt %.64q", plugin, req.Prompt.Name)
	}
	return []abi.Message{{Role: abi.RoleUser, Content: fill(text, req.Prompt.Vars)}}, nil
}

// fill replaces every {{ name }} by its value, in one pass: a value that looks
// like a placeholder stays as it is.
func fill(template string, vars []abi.Var) string {
	pairs := make([]string, 0, 2*len(vars))
	for _, v := range vars {
		pairs = append(pairs, "{{ "+v.Name+" }}", v.Value)
	}
	return strings.NewReplacer(pairs...).Replace(template)
}

func (r *run) toolSet(set *abi.ToolSet) ([]Tool, error) {
	if set == nil {
		return nil, nil
	}
	all := r.offered()
	if set.All {
		return all, nil
	}
	out := make([]Tool, 0, len(set.Names))
	for _, name := range set.Names {
		i := indexTool(all, name)
		if i < 0 {
			return nil, fault.New(fault.Plugin, "workflow: it offers a tool %.64q that is not exposed", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

func indexTool(tools []Tool, name string) int {
	for i := range tools {
		if tools[i].Name == name {
			return i
		}
	}
	return -1
}
