// Package conform holds an agent against three specifications, clause by
// clause: the platform's (platform.md and its seed), the agent-service contract
// and the AgentV contract. It sees the agent as its clients do, over HTTP, and
// the folder that it is deployed from; whose agent it is does not matter.
//
// A clause that an agent need not serve, or that cannot be seen from where we
// stand, is not applicable and says why. Requests are made so that a model is
// asked for the question of [Target.Ask] alone.
package conform

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// Level says how much a clause counts.
type Level string

// Levels of RFC 2119. Only a failed Must decides.
const (
	Must   Level = "MUST"
	Should Level = "SHOULD"
)

// Specifications.
const (
	SpecPlatform = "platform"
	SpecService  = "agent-service"
	SpecTurn     = "agentv"
)

// Outcome is what came of a clause.
type Outcome string

// Outcomes.
const (
	Passed        Outcome = "pass"
	Failed        Outcome = "fail"
	NotApplicable Outcome = "not applicable"
)

// Clause is one demand of a specification.
type Clause struct {
	ID      string // unique in its specification
	Spec    string
	Section string // of the specification
	Level   Level
	Text    string // what is demanded, in one sentence
	check   func(ctx context.Context, s *subject) finding
}

// Result is a clause and what came of it.
type Result struct {
	Clause
	Outcome Outcome
	Reason  string // why it failed or is not applicable
}

type finding struct {
	outcome Outcome
	reason  string
}

func pass() finding { return finding{outcome: Passed} }

func fail(format string, args ...any) finding {
	return finding{Failed, fmt.Sprintf(format, args...)}
}

func skip(format string, args ...any) finding {
	return finding{NotApplicable, fmt.Sprintf(format, args...)}
}

// Target is what is looked at. URL or Dir may be empty; their clauses are not
// applicable then.
type Target struct {
	URL  string   // the agent's origin, http://host:port
	Key  string   // service key; never printed
	Dir  string   // the folder that the agent is deployed from
	Ask  string   // a question that the agent answers; empty: no stream is looked at
	Spec []string // empty: all three
}

// Options bound what a run takes.
type Options struct {
	// Timeout of one request that asks no model, 15 s by default.
	Timeout time.Duration
	// AskTimeout of one request that does, 6 minutes by default.
	AskTimeout time.Duration
	// TurnTimeout is what an AgentV harness waits for an answer, 30 s by default.
	TurnTimeout time.Duration
}

// Clauses are all clauses of the specifications, in the order of their checks.
func Clauses(specs ...string) []Clause {
	var all []Clause
	for _, part := range [][]Clause{
		platformWire(), platformCode(), platformImage(), platformManifests(), platformDeployment(),
		serviceRoutes(), serviceKey(), serviceIdentity(), serviceRequest(), serviceStream(), serviceSteps(),
		serviceVersion(), serviceInteractions(), serviceErrors(),
		turnClauses(),
	} {
		for _, c := range part {
			if len(specs) == 0 || slices.Contains(specs, c.Spec) {
				all = append(all, c)
			}
		}
	}
	return all
}

// Run checks every clause. Its error means that nothing can be said about the
// agent: it cannot be reached, it refuses the key, or the folder cannot be read.
func Run(ctx context.Context, t Target, opts Options) (*Report, error) {
	s, err := newSubject(t, opts)
	if err != nil {
		return nil, err
	}
	defer s.client.CloseIdleConnections()
	if err := s.reach(ctx); err != nil {
		return nil, errors.New(s.conceal(err.Error()))
	}
	r := &Report{URL: t.URL, Dir: t.Dir}
	for _, c := range Clauses(t.Spec...) {
		f := c.check(ctx, s)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("interrupted: %w", context.Cause(ctx))
		}
		r.Results = append(r.Results, Result{Clause: c, Outcome: f.outcome, Reason: s.conceal(f.reason)})
	}
	return r, nil
}

func newSubject(t Target, opts Options) (*subject, error) {
	for _, spec := range t.Spec {
		if spec != SpecPlatform && spec != SpecService && spec != SpecTurn {
			return nil, fmt.Errorf("expected a specification of %s, %s and %s, got %q", SpecPlatform, SpecService, SpecTurn, spec)
		}
	}
	if t.URL == "" && t.Dir == "" {
		return nil, errors.New("expected an agent's address, a folder, or both")
	}
	if t.URL != "" {
		u, err := url.Parse(t.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
			return nil, errors.New("expected an address such as http://127.0.0.1:8000")
		}
		t.URL = strings.TrimRight(t.URL, "/")
	}
	if t.Dir != "" {
		if info, err := os.Stat(t.Dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s: expected a folder that can be read", t.Dir)
		}
	}
	if opts.Timeout == 0 {
		opts.Timeout = 15 * time.Second
	}
	if opts.AskTimeout == 0 {
		opts.AskTimeout = 6 * time.Minute
	}
	if opts.TurnTimeout == 0 {
		opts.TurnTimeout = 30 * time.Second
	}
	return &subject{Target: t, opts: opts, client: &http.Client{
		Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 4},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// wants tells whether a specification is asked for.
func (t Target) wants(spec string) bool { return len(t.Spec) == 0 || slices.Contains(t.Spec, spec) }
