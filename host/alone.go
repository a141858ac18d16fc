package host

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/host/contract/turn"
	"weir/host/fault"
	"weir/host/hold"
	"weir/host/store/memory"
)

// TurnOptions are what an agent for the turn contract alone is started with.
type TurnOptions struct {
	Options
	// Listener names who is served, in the principal of runs: "stdio", or a
	// socket's address.
	Listener string
	// Caller is a name of the process that asks, such as its id and the time of
	// its start. Then sessions, and the runs that wait in them, are kept under
	// the state directory for the next process that the same caller starts.
	// Empty: they end with this process.
	Caller string
}

// TurnAgent is an agent without listeners, platform and MCP server: callers
// perform its tools. It has the policy that `weir serve` has.
type TurnAgent struct {
	host *Host
	turn *turn.Handler
	opts TurnOptions
}

// StartTurn starts one. It needs no service key and no MCP key.
func StartTurn(ctx context.Context, opts TurnOptions) (*TurnAgent, error) {
	h := &Host{log: opts.Logger, reached: opts.Reached, alone: &opts}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.stderr = h.log
	a := &TurnAgent{host: h, opts: opts}
	if err := a.start(ctx); err != nil {
		return nil, errors.Join(err, h.Stop(context.WithoutCancel(ctx)))
	}
	return a, nil
}

func (a *TurnAgent) start(ctx context.Context) (err error) {
	h := a.host
	d, err := h.read(a.opts.Options)
	if err != nil {
		return err
	}
	if err := h.startTelemetry(ctx); err != nil {
		return err
	}
	p, err := h.startPlugins(ctx, d)
	if err != nil {
		return err
	}
	if err := h.startModel(); err != nil {
		return err
	}
	if err := h.startOwnStore(ctx); err != nil {
		return err
	}
	if err := h.startPolicy(ctx, p); err != nil {
		return err
	}
	a.turn, err = h.newTurn()
	return err
}

// Lines answers the requests of a reader until that ends, see
// [turn.Handler.Lines], or ctx does: a read that is under way then is left to
// the end of the process, since a terminal's cannot be ended.
func (a *TurnAgent) Lines(ctx context.Context, in io.Reader, out io.Writer) error {
	c := local(a.opts.Listener)
	c.Process = true
	done := make(chan error, 1)
	go func() { done <- a.turn.Lines(ctx, in, out, c) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Serve answers a listener's connections until ctx ends.
func (a *TurnAgent) Serve(ctx context.Context, ln net.Listener) error {
	context.AfterFunc(ctx, a.turn.Drain)
	return a.turn.ServeLines(ctx, ln, local(a.opts.Listener))
}

// Stop ends what is at work, and keeps what waits if there is a caller to keep
// it for. It is called once.
func (a *TurnAgent) Stop(ctx context.Context) error {
	a.turn.Drain()
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	a.turn.Wait(wait)
	return a.host.Stop(ctx)
}

// keepAlone is how long a file of a caller counts.
const keepAlone = 10 * time.Minute

// startOwnStore opens a store that is this process's own: one of `weir serve`
// belongs to that.
func (h *Host) startOwnStore(ctx context.Context) error {
	s, path := memory.New(memory.Options{}), ""
	if h.alone.Caller != "" {
		dir := filepath.Join(h.cfg.StateDir(), "agentv")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fault.New(fault.Invalid, "state: expected a writable folder: %w", err)
		}
		sweepAlone(dir)
		path = filepath.Join(dir, filepath.Base(h.alone.Caller)+".json")
		if err := h.holdCaller(ctx, strings.TrimSuffix(path, ".json")+heldSuffix); err != nil {
			return err
		}
		if data, err := os.ReadFile(path); err == nil {
			restored, err := memory.Restore(data, memory.Options{})
			if err != nil {
				h.log.Warn("sessions of an earlier process cannot be read and are forgotten", "error", err)
			} else {
				s = restored
			}
		}
	}
	h.store = s
	h.onStop(func(context.Context) error { return errors.Join(saveAlone(path, s), s.Close()) })
	return nil
}

// heldSuffix ends the names of the files that processes of one caller hold.
const heldSuffix = ".lock"

// holdCaller waits until no other process of the caller is at work, until this
// one has ended: of two that read the same sessions, one would undo what the
// other did.
func (h *Host) holdCaller(ctx context.Context, path string) error {
	limit := h.cfg.Contract.Turn.AnswerTimeout
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	f, err := hold.Wait(ctx, path)
	switch {
	case errors.Is(err, hold.ErrHeld):
		return fault.New(fault.Unavailable, "sessions: expected the other process of the same parent to end within %s; with --forget both work at once and keep nothing", limit)
	case err != nil:
		return fault.New(fault.Invalid, "sessions: expected a file that can be locked: %w", err)
	}
	h.onStop(func(context.Context) error { hold.Release(f); return nil })
	return nil
}

// sweepAlone removes the files of callers that have not asked for long.
func sweepAlone(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) <= keepAlone {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if !strings.HasSuffix(path, heldSuffix) {
			_ = os.Remove(path)
		} else if f, err := hold.Open(path); err == nil { // of a process that was killed
			hold.Release(f)
		}
	}
}

// saveAlone replaces a file in one step.
func saveAlone(path string, s *memory.Store) error {
	if path == "" {
		return nil
	}
	data, err := s.Snapshot()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "*.new")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return os.Rename(f.Name(), path)
}
