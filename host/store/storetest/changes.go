package storetest

import (
	"context"
	"errors"
	"testing"

	"weir/host/store"
)

// changes are heard of, also those that a peer makes, from the first moment that
// Changes says it listens. What does not have the prefix is not.
func changes(t *testing.T, b Backend, s store.Store) {
	other := b.peer(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	want := map[string]int64{"runs.a": 2, "runs.b": 1}
	var last error
	for c, err := range s.Changes(ctx, "runs.") {
		switch {
		case err != nil:
			last = err
		case c == store.Change{}:
			mustAppend(t, other, "audit", 0, "i", "x")
			mustAppend(t, s, "runs.a", 0, "i1", "x")
			mustAppend(t, other, "runs.a", 1, "i2", "y")
			mustAppend(t, other, "runs.b", 0, "i", "x")
		case c.Position > want[c.Log] && want[c.Log] > 0 || c.Log == "audit":
			t.Errorf("told %+v", c)
		case c.Position == want[c.Log]:
			delete(want, c.Log)
		}
		if len(want) == 0 {
			cancel()
		}
	}
	if len(want) > 0 || !errors.Is(last, context.Canceled) {
		t.Errorf("not told of %v, ended with %v", want, last)
	}
}
