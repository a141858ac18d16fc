package host

import (
	"context"
	"iter"
	"time"

	"weir/abi"
	"weir/host/model"
	"weir/host/run"
	"weir/host/store"
	"weir/host/store/memory"
	"weir/host/tool"
)

// models is the model client as the engine calls it.
type models struct {
	client *model.Client
	names  map[string]string // alias to model
}

func (m models) Name(alias string) string { return m.names[alias] }

func (m models) Complete(ctx context.Context, call *run.ModelCall, onText func(string)) (*run.ModelReply, error) {
	req := &model.Request{Alias: call.Alias, Messages: call.Messages,
		Temperature: call.Temperature, MaxTokens: call.MaxTokens, Stream: call.Stream}
	for _, t := range call.Tools {
		req.Tools = append(req.Tools, model.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	reply, err := m.client.Complete(ctx, req, onText)
	if err != nil {
		return nil, err
	}
	return &run.ModelReply{Text: reply.Text, ToolCalls: reply.ToolCalls, FinishReason: reply.FinishReason,
		InputTokens: reply.Usage.InputTokens, OutputTokens: reply.Usage.OutputTokens}, nil
}

// tools is a set of the MCP server's tools as the engine calls it.
type tools struct {
	set  *tool.Set
	list []run.Tool
}

func newTools(set *tool.Set) tools {
	t := tools{set: set}
	for _, offered := range set.Tools() {
		t.list = append(t.list, runTool(offered))
	}
	return t
}

func runTool(t tool.Tool) run.Tool {
	return run.Tool{Name: t.Name, StepName: t.StepName, Description: t.Description,
		Schema: t.Schema, ReadOnly: t.ReadOnly}
}

func (t tools) List() []run.Tool { return t.list }

func (t tools) Parse(name, arguments string) (run.Tool, abi.Raw, error) {
	found, args, err := t.set.Parse(name, arguments)
	return runTool(found), args, err
}

func (t tools) Validate(name string, arguments abi.Raw) error {
	return t.set.Validate(name, arguments)
}

func (t tools) Call(ctx context.Context, name string, arguments abi.Raw) (string, bool, error) {
	return t.set.Call(ctx, name, arguments)
}

// logs is the store as the engine and the keeper of waiting runs use it.
type logs struct{ store.Store }

// Append settles a lost acknowledgement of its own.
func (l logs) Append(ctx context.Context, log string, expected int64, id string, records [][]byte) (int64, error) {
	return store.AppendSettled(ctx, l.Store, log, expected, id, records, nil)
}

// Complete lets the memory backend count the log as one of those that it may
// drop. Elsewhere age decides, and a marker nobody needs would wait for the disk.
func (l logs) Complete(ctx context.Context, log string) error {
	if m, ok := l.Store.(*memory.Store); ok {
		return m.End(ctx, log)
	}
	return nil
}

func (l logs) Read(ctx context.Context, log string, from int64) iter.Seq2[run.Message, error] {
	return func(yield func(run.Message, error) bool) {
		for m, err := range l.Store.Read(ctx, log, from) {
			if !yield(run.Message{Position: m.Position, Records: m.Records}, err) {
				return
			}
		}
	}
}

func (l logs) Changes(ctx context.Context, prefix string) iter.Seq2[run.Change, error] {
	return func(yield func(run.Change, error) bool) {
		for c, err := range l.Store.Changes(ctx, prefix) {
			if !yield(run.Change(c), err) {
				return
			}
		}
	}
}

func (l logs) Get(ctx context.Context, key string) ([]byte, error) {
	v, err := l.Store.Get(ctx, key)
	return v.Data, err
}

func (l logs) Put(ctx context.Context, key string, data []byte, ttl time.Duration) error {
	_, err := l.Store.Put(ctx, key, data, store.Any, ttl)
	return err
}

func (l logs) Delete(ctx context.Context, key string) error {
	return l.Store.Delete(ctx, key, store.Any)
}
