package host_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"weir/abi"
	"weir/host"
	"weir/host/hosttest"
	"weir/host/plugin/plugintest"
	"weir/host/run/replay"
)

// lives counts the plugins of a host that are not freed. Each plugin that may
// log has a logger of its own, which nobody holds but the plugin.
type lives struct {
	mu  sync.Mutex
	all []weak.Pointer[pluginLog]
}

type pluginLog struct {
	slog.Handler
	lives *lives
}

func (p *pluginLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	own := &pluginLog{p.Handler.WithAttrs(attrs), p.lives}
	if len(attrs) == 1 && attrs[0].Key == "name" {
		p.lives.mu.Lock()
		defer p.lives.mu.Unlock()
		p.lives.all = append(p.lives.all, weak.Make(own))
	}
	return own
}

// count returns how many plugins there are now, and how many have been made.
func (l *lives) count() (now, made int) {
	runtime.GC()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		if one.Value() != nil {
			now++
		}
	}
	return now, len(l.all)
}

// P5: of a policy with variants that does not become current everything is
// freed, however far it came, and nothing of what the current one has lent it.
func TestHalfLoadedVariantsAreFreed(t *testing.T) {
	gate, err := replay.ParseGate("text=0")
	if err != nil {
		t.Fatal(err)
	}
	for name, breakIt := range map[string]func(t *testing.T, w *hosttest.World){
		"the second variant does not load": func(t *testing.T, w *hosttest.World) {
			w.WriteFile(t, "plugins/flow.wasm", hosttest.Workflow("answer-b"))
			g := plugintest.NewGuest().Answer(abi.HookCheckInput, `{"verdict":"allow"}`)
			g.Settings.Error = "no such pattern"
			w.WriteFile(t, "plugins/second.wasm", g.Build())
		},
		"the second variant's guard is none": func(t *testing.T, w *hosttest.World) {
			w.WriteFile(t, "plugins/flow.wasm", hosttest.Workflow("answer-b"))
			w.WriteFile(t, "plugins/second.wasm", hosttest.Workflow("no guard"))
		},
		"a tool is not there": func(t *testing.T, w *hosttest.World) {
			edit(t, w, `include = ["search_tickets"]`, `include = ["search_tickets", "close_ticket"]`)
		},
		"a variant does not pass the gate, the others are lent": func(t *testing.T, w *hosttest.World) {
			w.WriteFile(t, "plugins/other.wasm", hosttest.Workflow("something else"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := varied(t, "")
			for _, table := range []string{"[plugins.flow]\n", "[plugins.screen]\n", "[variant.plugins.other]\n"} {
				edit(t, w, table, table+"log = true\n")
			}
			var l lives
			opts := w.Options(w.Env(), nil, nil)
			opts.Logger = slog.New(&pluginLog{slog.DiscardHandler, &l})
			if w.Host, err = host.Start(context.Background(), opts); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = w.Host.Stop(context.Background()) })
			w.URL = "http://" + w.Host.Addr().String()
			members(t, w, 12)
			if now, made := l.count(); now != 6 || made != 6 {
				t.Fatalf("three policies of two plugins: %d of %d", now, made)
			}
			breakIt(t, w)
			if outcome, _, err := w.Host.ReloadIf(t.Context(), time.Hour, gate); outcome != host.OutcomeFailed || err == nil {
				t.Fatalf("%s, %v", outcome, err)
			}
			if _, made := l.count(); made < 8 {
				t.Fatalf("only %d plugins were made, so there is nothing to free", made-6)
			}
			eventually(t, "what was loaded is freed", func() bool { now, _ := l.count(); return now == 6 })
			members(t, w, 12)
		})
	}
}
