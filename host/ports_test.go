package host

import (
	"slices"
	"testing"

	"weir/host/fault"
	"weir/host/run"
	"weir/host/store"
	"weir/host/store/jetstream"
	"weir/host/store/memory"
)

// The log of a run that never waited is found like that of one that did, in
// every store, and is written once.
func TestWholeLogs(t *testing.T) {
	for name, open := range map[string]func(*testing.T) store.Store{
		"memory": func(*testing.T) store.Store { return memory.New(memory.Options{}) },
		"jetstream": func(t *testing.T) store.Store {
			s, err := jetstream.Open(t.Context(), jetstream.Options{Dir: t.TempDir(), LateLogs: wholeLogs})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := logs{open(t)}
			defer l.Close()
			ctx := t.Context()
			record := [][]byte{[]byte("a")}
			if _, err := l.Append(ctx, run.LogName("waited"), 0, "i1", record); err != nil {
				t.Fatal(err)
			}
			if err := l.Complete(ctx, run.LogName("whole"), "i2", record); err != nil {
				t.Fatal(err)
			}
			if err := l.Complete(ctx, run.LogName("whole"), "i3", record); fault.Of(err) != fault.Conflict && fault.Of(err) != fault.Gone {
				t.Errorf("a second log of the same run: %v, want a conflict", err)
			}
			names, err := l.list(ctx, run.LogName(""))
			slices.Sort(names)
			if err != nil || !slices.Equal(names, []string{run.LogName("waited"), run.LogName("whole")}) {
				t.Errorf("listed %v, %v", names, err)
			}
			for _, id := range []string{"waited", "whole"} {
				n := 0
				for m, err := range l.Read(ctx, run.LogName(id), 0) {
					if n++; err != nil || m.Position != 1 || string(m.Records[0]) != "a" {
						t.Errorf("%s: %+v, %v", id, m, err)
					}
				}
				if n != 1 {
					t.Errorf("%s has %d messages, want 1", id, n)
				}
			}
			for m, err := range l.Read(ctx, run.LogName("nobody"), 0) {
				t.Errorf("a log that is not there: %+v, %v", m, err)
			}
		})
	}
}
