package host

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"

	"github.com/google/uuid"

	"weir/abi"
	"weir/host/approval"
	"weir/host/auth"
	"weir/host/config"
	"weir/host/contract/turn"
	"weir/host/fault"
	"weir/host/run"
	"weir/host/server"
	"weir/host/tool"
)

// newTurn makes the turn contract's handler.
func (h *Host) newTurn() (*turn.Handler, error) {
	t := h.cfg.Contract.Turn
	tools, err := turnTools(t)
	if err != nil {
		return nil, err
	}
	identity, err := turnIdentity(t)
	if err != nil {
		return nil, err
	}
	c := turnContract{h.keeper}
	return turn.New(turn.Deps{Runner: c, Answers: c, Values: logs{h.store}, Sessions: newSessions(h.store)}, turn.Options{
		Name: h.cfg.Agent.Name, Version: h.cfg.Agent.Version, Model: h.cfg.Model.Agent.Name,
		Tools: tools, Aliases: t.Aliases, AcceptAuto: t.AcceptAuto, InferSingle: t.Infer == config.InferSingle,
		Identity: identity, AnswerTimeout: t.AnswerTimeout, SessionTimeout: t.SessionTimeout,
		MaxSessions: h.cfg.Server.MaxRuns, MaxPerUser: h.cfg.Run.MaxPerUser, Logger: h.log,
	})
}

// checkTurn says what a start would refuse.
func checkTurn(cfg *config.Config) error {
	_, err := turnTools(cfg.Contract.Turn)
	_, err2 := turnIdentity(cfg.Contract.Turn)
	return errors.Join(err, err2)
}

func turnIdentity(t config.Turn) (turn.Identity, error) {
	identity := turn.Identity{Policy: t.Identity}
	if t.Identity == config.IdentityIgnore {
		return identity, nil
	}
	keys, err := turn.LoadKeys(t.TrustRoot)
	if err != nil {
		return identity, fault.New(fault.Invalid, "[contract.turn] trust_root: %w", err)
	}
	identity.Keys = keys
	return identity, nil
}

// turnTools are the tools that callers perform, checked as they will be offered.
func turnTools(t config.Turn) (tools []run.Tool, err error) {
	for _, c := range t.Tools {
		tools = append(tools, run.Tool{Name: c.Name, StepName: c.Name, Description: c.Description, Schema: abi.Raw(c.Schema)})
	}
	if t.Scenario != "" {
		data, err := os.ReadFile(t.Scenario)
		if err != nil {
			return nil, fault.New(fault.Invalid, "[contract.turn] scenario: expected a readable file: %w", err)
		}
		if tools, err = turn.ScenarioTools(data); err != nil {
			return nil, fault.New(fault.Invalid, "[contract.turn] scenario: %w", err)
		}
	}
	if _, err := declare(tools); err != nil {
		return nil, fault.New(fault.Invalid, "[contract.turn] %w", err)
	}
	return tools, nil
}

// declare is the registry of tools that a caller performs.
func declare(list []run.Tool) (run.Tools, error) {
	var offered []tool.Tool
	for _, t := range list {
		offered = append(offered, tool.Tool{Name: t.Name, StepName: t.StepName, Description: t.Description,
			Published: t.Description, Schema: t.Schema, ReadOnly: t.ReadOnly})
	}
	set, err := tool.Declare(offered)
	if err != nil {
		return nil, err
	}
	return newTools(set), nil
}

// turns tells whether this host's listeners serve the turn contract.
func (h *Host) turns() bool { return h.alone == nil && turns(h.cfg) }

func turns(cfg *config.Config) bool {
	return cfg.Contract.Turn.Enabled || cfg.Contract.Turn.Listen != ""
}

// startTurn makes the contract and opens its listener without a key.
func (h *Host) startTurn() (err error) {
	if !h.turns() {
		return nil
	}
	if h.turn, err = h.newTurn(); err != nil {
		return err
	}
	h.sweepSessions()
	if h.cfg.Contract.Turn.Listen == "" {
		return nil
	}
	s, err := server.New(server.Options{
		Listen: h.cfg.Contract.Turn.Listen, Authenticate: unauthenticated, Interrupt: h.turn.Drain,
		Routes: []server.Route{{Method: "POST", Path: turn.PathTask, Handle: h.turn.Execute, Traced: true}},
		Stall:  h.cfg.Server.Stall, Drain: h.cfg.Server.Drain, Tracer: h.tracer, Logger: h.log,
	})
	if err != nil {
		return err
	}
	if h.turnAddr, err = s.Start(); err != nil {
		return fault.New(fault.Unavailable, "[contract.turn] listen: %w", err)
	}
	h.log.Info("listening for callers without a key", "address", h.turnAddr.String())
	h.onStop(func(ctx context.Context) error { s.Stop(ctx); return nil })
	return nil
}

// TurnAddr is the address of the turn contract's listener without a key, nil
// where there is none.
func (h *Host) TurnAddr() net.Addr { return h.turnAddr }

// errBrowser refuses what a page in somebody's browser could send to loopback.
var errBrowser = fault.New(fault.Invalid, "expected application/json, and no origin")

// unauthenticated is everybody on a listener that asks for no key.
func unauthenticated(head server.Header) (any, error) {
	kinds := head.Values("Content-Type")
	media := ""
	if len(kinds) == 1 {
		media, _, _ = strings.Cut(kinds[0], ";")
	}
	if len(head.Values("Origin")) > 0 || !strings.EqualFold(strings.TrimSpace(media), "application/json") {
		return nil, errBrowser
	}
	return local("http"), nil
}

// localPrefix begins the name of whoever a listener without a key serves. The
// comma is in it because no authenticated user's name has one (host/auth): its
// runs and sessions are never theirs.
const localPrefix = "agentv,"

// local is the caller of a listener that authenticates nobody.
func local(listener string) turn.Caller {
	user := localPrefix + listener
	return turn.Caller{Local: true, Request: run.Request{
		Principal: run.Principal{UserID: user, Pseudonym: auth.Pseudonym(user)},
		RequestID: uuid.NewString(), RequestIDSource: run.SourceGenerated,
	}}
}

// turnContract is the keeper as the turn contract calls it.
type turnContract struct{ keeper *run.Keeper }

func (c turnContract) Run(ctx context.Context, req run.Request, out run.Observer, over func()) {
	c.keeper.Run(ctx, req, out, over)
}

func (c turnContract) Attach(ctx context.Context, user, id string, out run.Observer, over func()) (run.Interaction, error) {
	return c.keeper.Attach(ctx, user, id, out, over)
}

func (c turnContract) Abandon(user, id string) { c.keeper.Abandon(user, id) }

func (c turnContract) Perform(ctx context.Context, user, id, interaction string, results []run.CallResult) error {
	return c.keeper.Answer(ctx, user, id, interaction, func(kind string, _ abi.Raw) (abi.Raw, error) {
		if kind != run.KindCalls {
			return nil, fault.New(fault.NotFound, "no calls wait")
		}
		return json.Marshal(run.CallsAnswer{Outcome: abi.HumanAnswered, Results: results})
	})
}

// Say reads a person's word by what the prompt takes. What it does not take is
// a no.
func (c turnContract) Say(ctx context.Context, user, id, interaction, text string, agreed bool) error {
	return c.keeper.Answer(ctx, user, id, interaction, func(kind string, shown abi.Raw) (abi.Raw, error) {
		if kind == run.KindCalls {
			return nil, fault.New(fault.NotFound, "no question waits")
		}
		p, err := approval.ParsePrompt(shown)
		if err != nil {
			return nil, fault.New(fault.Internal, "the prompt in the log: %w", err)
		}
		answer, err := p.Accept(said(p, text, agreed))
		if err != nil {
			answer = approval.Answer{Outcome: approval.Cancelled}
		}
		return json.Marshal(answer)
	})
}

func said(p *approval.Prompt, text string, agreed bool) *approval.Response {
	r := &approval.Response{Kind: p.Kind, Text: text}
	switch p.Kind {
	case approval.KindBinaryChoice:
		r.ID, r.Bool = approval.CancelID, agreed
		if agreed {
			r.ID = approval.ConfirmID
		}
	case approval.KindRadio:
		word := strings.TrimSpace(text)
		for _, o := range p.Options {
			if strings.EqualFold(word, o.Value) || strings.EqualFold(word, o.Label) || strings.EqualFold(word, o.ID) {
				r.ID, r.Value = o.ID, o.Value
				break
			}
		}
	}
	return r
}
