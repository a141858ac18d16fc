package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/abi"
)

// saved is a session in the store, beside the log of its run: another process
// goes on with both.
type saved struct {
	Names       []string   `json:"names,omitempty"`
	Reply       string     `json:"reply"`
	Turns       []abi.Turn `json:"turns,omitempty"`
	Run         string     `json:"run,omitempty"`
	Interaction string     `json:"interaction,omitempty"` // that was told
	Text        string     `json:"text,omitempty"`        // released since the question
	Policy      string     `json:"policy,omitempty"`      // the run's generation
	Variant     string     `json:"variant,omitempty"`     // the session's
	Task        int        `json:"task"`
	Round       int        `json:"round"`
}

// maxSaved bounds a session in the store, in bytes; the oldest turns are dropped.
const maxSaved = 256 << 10

// storeTimeout bounds what a request waits for the store.
const storeTimeout = 5 * time.Second

// hashed is a name for anything that a user says. Each part is told from the
// next by its length, whatever it holds.
func hashed(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func nameKey(name string) string         { return "turn.name." + name }
func sessionKey(scope, id string) string { return "turn.session." + hashed(scope, "session", id) }

// keep writes the session down. A session that cannot be kept goes on all the
// same, in this process.
func (h *Handler) keep(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	names := lasting(s.names)
	v := saved{Names: names, Reply: s.reply, Variant: s.variant, Task: s.task, Round: s.round}
	if s.run != nil {
		now, _ := s.run.look()
		v.Run, v.Text, v.Policy = s.run.id, now.text, now.policy
		if s.told && now.pending != nil {
			v.Interaction = now.pending.ID
		}
	}
	body, err := json.Marshal(v)
	if err == nil {
		v.Turns = newest(s.turns, maxSaved-len(body)-len(`,"turns":[]`))
		body, err = json.Marshal(v)
	}
	if err == nil {
		err = h.deps.Sessions.Put(ctx, sessionKey(s.scope, s.id), body, h.opts.SessionTimeout)
	}
	for _, name := range names {
		if err == nil {
			err = h.deps.Values.Put(ctx, nameKey(name), []byte(s.id), h.opts.SessionTimeout)
		}
	}
	if err != nil {
		h.opts.Logger.WarnContext(ctx, "a session is not in the store", "session", s.id, "error", err)
	}
}

// lasting are the names that mean something to another process.
func lasting(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.HasPrefix(name, connectionPrefix) })
}

// newest are the last turns that fit into so many bytes of JSON, at least one.
func newest(turns []abi.Turn, room int) []abi.Turn {
	for i := len(turns) - 1; i >= 0; i-- {
		one, err := json.Marshal(turns[i])
		if room -= len(one) + 1; err != nil || room < 0 {
			return turns[min(i+1, len(turns)-1):]
		}
	}
	return turns
}

// erase takes a session out of the store that has expired here, unless another
// process has gone on with it. Its names expire by themselves and hold no text.
func (h *Handler) erase(s *session) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if v := h.read(ctx, s.scope, s.id); v != nil && v.Reply != s.reply {
		return
	}
	if err := h.deps.Sessions.Delete(ctx, sessionKey(s.scope, s.id)); err != nil {
		h.opts.Logger.WarnContext(ctx, "an expired session stays in the store for now", "session", s.id, "error", err)
	}
}

// drop takes sessions out of the store, so that one for which there was no room
// here is gone from both.
func (h *Handler) drop(ctx context.Context, evicted []*session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	for _, s := range evicted {
		err := h.deps.Sessions.Delete(ctx, sessionKey(s.scope, s.id))
		for _, name := range lasting(s.names) {
			err = errors.Join(err, h.deps.Values.Delete(ctx, nameKey(name)))
		}
		if err != nil {
			h.opts.Logger.WarnContext(ctx, "a session stays in the store until it expires", "session", s.id, "error", err)
		}
	}
}

// read returns what another process has left of a session, or nil.
func (h *Handler) read(ctx context.Context, scope, id string) *saved {
	body, err := h.deps.Sessions.Get(ctx, sessionKey(scope, id))
	if err != nil {
		return nil
	}
	var v saved
	if err := json.Unmarshal(body, &v); err != nil {
		h.opts.Logger.ErrorContext(ctx, "a session in the store cannot be read", "session", id, "error", err)
		return nil
	}
	return &v
}

// attach goes on with the run that waits in a session, and tells whether it
// does: one that does not wait here any more is one that nobody knows.
func (h *Handler) attach(s *session, v *saved) bool {
	s.names, s.reply, s.turns, s.variant, s.task, s.round = v.Names, v.Reply, v.Turns, v.Variant, v.Task, v.Round
	if v.Run == "" {
		return true
	}
	o := newOngoing(v.Run)
	o.text.WriteString(v.Text)
	o.toldText, o.policy, o.variant = len(v.Text), v.Policy, v.Variant
	i, err := h.deps.Runner.Attach(s.lives(), s.user, v.Run, o, o.over)
	if err != nil {
		s.cancel(err)
		return false
	}
	o.Asked(i)
	s.run, s.told = o, i.ID == v.Interaction
	s.waiting.Store(s.told)
	return true
}
