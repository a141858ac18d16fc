package store_test

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"weir/host/fault"
	"weir/host/store"
	"weir/host/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// flaky is a store whose first appends are made or not made, and whose
// acknowledgements are lost either way.
type flaky struct {
	store.Store
	lost, unmade int
}

func (f *flaky) Append(ctx context.Context, log string, expected int64, id string, records [][]byte) (int64, error) {
	switch {
	case f.unmade > 0:
		f.unmade--
		return 0, fault.New(fault.Unavailable, "no answer")
	case f.lost > 0:
		f.lost--
		if _, err := f.Store.Append(ctx, log, expected, id, records); err != nil {
			return 0, err
		}
		return 0, fault.New(fault.Unavailable, "no answer")
	}
	return f.Store.Append(ctx, log, expected, id, records)
}

// DECISIONS 5: on a conflict or a lost acknowledgement read the tail.
func TestAppendSettled(t *testing.T) {
	always := func([]store.Message) bool { return true }
	for _, c := range []struct {
		name         string
		before       int // messages of others
		expected     int64
		lost, unmade int
		pending      func([]store.Message) bool
		position     int64
		kind         fault.Kind // of the error, when position is 0
		length       int64
	}{
		{name: "plain", position: 1, length: 1},
		{name: "the acknowledgement is lost", lost: 1, position: 1, length: 1},
		{name: "the append is lost", unmade: 1, position: 1, length: 1},
		{name: "both, behind somebody else", before: 2, unmade: 1, lost: 1, pending: always, position: 3, length: 3},
		{name: "somebody else was first", before: 1, kind: fault.Conflict, length: 1},
		{name: "lost, and somebody else was first", before: 1, unmade: 1, kind: fault.Conflict, length: 1},
		{name: "nobody answers", unmade: 100, kind: fault.Unavailable},
		{name: "invalid is not tried again", expected: -1, kind: fault.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := memory.New(memory.Options{})
			defer m.Close()
			for i := range c.before {
				if _, err := m.Append(t.Context(), "run", int64(i), fmt.Sprintf("other%d", i), [][]byte{{1}}); err != nil {
					t.Fatal(err)
				}
			}
			f := &flaky{Store: m, lost: c.lost, unmade: c.unmade}
			got, err := store.AppendSettled(t.Context(), f, "run", c.expected, "mine", [][]byte{{2}}, c.pending)
			if got != c.position || c.position == 0 && fault.Of(err) != c.kind || c.position > 0 && err != nil {
				t.Errorf("AppendSettled = %d, %v, want %d or kind %v", got, err, c.position, c.kind)
			}
			var length int64
			for range m.Read(t.Context(), "run", 0) {
				length++
			}
			if length != c.length {
				t.Errorf("the log has %d messages, want %d", length, c.length)
			}
		})
	}
}

// Many settle at once: every append that is still wanted is made exactly once.
func TestAppendSettledConcurrently(t *testing.T) {
	m := memory.New(memory.Options{})
	defer m.Close()
	const appenders = 4
	done := make(chan error, appenders)
	for i := range appenders {
		go func() {
			_, err := store.AppendSettled(t.Context(), m, "run", 0, fmt.Sprintf("a%d", i), [][]byte{{1}},
				func([]store.Message) bool { return true })
			done <- err
		}()
	}
	for range appenders {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	seen := map[string]int{}
	for message, err := range m.Read(t.Context(), "run", 0) {
		if err != nil {
			t.Fatal(err)
		}
		seen[message.ID]++
	}
	if len(seen) != appenders {
		t.Errorf("ids in the log: %v, want %d different ones once each", seen, appenders)
	}
}
