package run

import (
	"context"
	"iter"
	"time"

	"weir/host/store"
)

// logs is a real store as the engine and the keeper use it.
type logs struct{ store.Store }

func (l logs) Append(ctx context.Context, log string, expected int64, id string, records [][]byte) (int64, error) {
	return store.AppendSettled(ctx, l.Store, log, expected, id, records, nil)
}

// wholePrefix begins the names of completed logs: to a store they are others.
const wholePrefix = "whole."

func (l logs) Complete(ctx context.Context, log, id string, records [][]byte) error {
	if _, err := l.Append(ctx, wholePrefix+log, 0, id, records); err != nil {
		return err
	}
	return l.End(ctx, wholePrefix+log)
}

func (l logs) Read(ctx context.Context, log string, from int64) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		found := false
		for _, name := range []string{log, wholePrefix + log} {
			for m, err := range l.Store.Read(ctx, name, from) {
				found = true
				if !yield(Message{Position: m.Position, Records: m.Records}, err) {
					return
				}
			}
			if found {
				return
			}
		}
	}
}

func (l logs) Changes(ctx context.Context, prefix string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for c, err := range l.Store.Changes(ctx, prefix) {
			if !yield(Change(c), err) {
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
