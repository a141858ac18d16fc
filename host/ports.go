package host

import (
	"context"
	"iter"
	"strings"
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

// wholeLogs begins the names of logs that were written at once when their run
// had ended. A lone server inside this process writes these late.
const wholeLogs = "whole."

// Complete writes the log under its other name, and ends it where something is
// dropped after its end; elsewhere age decides.
func (l logs) Complete(ctx context.Context, log, id string, records [][]byte) error {
	m, inMemory := l.Store.(*memory.Store)
	if !inMemory {
		_, err := l.Append(ctx, wholeLogs+log, 0, id, records)
		return err
	}
	if _, err := l.Append(ctx, log, 0, id, records); err != nil {
		return err
	}
	return m.End(ctx, log)
}

// Read yields a log under whichever of its names it has.
func (l logs) Read(ctx context.Context, log string, from int64) iter.Seq2[run.Message, error] {
	return func(yield func(run.Message, error) bool) {
		for _, name := range []string{log, wholeLogs + log} {
			found := false
			for m, err := range l.Store.Read(ctx, name, from) {
				found = true
				if !yield(run.Message{Position: m.Position, Records: m.Records}, err) {
					return
				}
			}
			if found {
				return
			}
		}
	}
}

// list returns the names of the logs that begin with the prefix.
func (l logs) list(ctx context.Context, prefix string) ([]string, error) {
	names, err := l.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	whole, err := l.List(ctx, wholeLogs+prefix)
	for _, name := range whole {
		names = append(names, strings.TrimPrefix(name, wholeLogs))
	}
	return names, err
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
