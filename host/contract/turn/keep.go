package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	Task        int        `json:"task"`
	Round       int        `json:"round"`
}

// maxSaved bounds a session in the store, in bytes; the oldest turns are dropped.
const maxSaved = 256 << 10

// storeTimeout bounds what a request waits for the store.
const storeTimeout = 5 * time.Second

// hashed is a name for anything that a user says.
func hashed(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

func nameKey(name string) string        { return "turn.name." + name }
func sessionKey(user, id string) string { return "turn.session." + hashed(user, "session", id) }

// keep writes the session down. A session that cannot be kept goes on all the
// same, in this process.
func (h *Handler) keep(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	names := slices.DeleteFunc(slices.Clone(s.names), func(name string) bool { return strings.HasPrefix(name, connectionPrefix) })
	v := saved{Names: names, Reply: s.reply, Turns: s.turns, Task: s.task, Round: s.round}
	if s.run != nil {
		now, _ := s.run.look()
		v.Run, v.Text, v.Policy = s.run.id, now.text, now.policy
		if s.told && now.pending != nil {
			v.Interaction = now.pending.ID
		}
	}
	body, err := json.Marshal(v)
	for err == nil && len(body) > maxSaved && len(v.Turns) > 1 {
		v.Turns = v.Turns[1:]
		body, err = json.Marshal(v)
	}
	if err == nil {
		err = h.deps.Values.Put(ctx, sessionKey(s.user, s.id), body, h.opts.SessionTimeout)
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

// load returns the session that another process has left, or nil. A run that
// does not wait here any more is one that nobody knows.
func (h *Handler) load(ctx context.Context, user, id string) *session {
	body, err := h.deps.Values.Get(ctx, sessionKey(user, id))
	if err != nil {
		return nil
	}
	var v saved
	if err := json.Unmarshal(body, &v); err != nil {
		h.opts.Logger.ErrorContext(ctx, "a session in the store cannot be read", "session", id, "error", err)
		return nil
	}
	s := newSession(id, user)
	s.names, s.reply, s.turns, s.task, s.round = v.Names, v.Reply, v.Turns, v.Task, v.Round
	if v.Run == "" {
		return s
	}
	o := newOngoing(v.Run)
	o.text.WriteString(v.Text)
	o.toldText, o.policy = len(v.Text), v.Policy
	i, err := h.deps.Runner.Attach(s.lives(), user, v.Run, o, o.over)
	if err != nil {
		s.cancel(err)
		return nil
	}
	o.Asked(i)
	s.run, s.told = o, i.ID == v.Interaction
	s.waiting.Store(s.told)
	return s
}
