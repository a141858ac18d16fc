// Package approval is what a person may authorise, as rules without state: which
// changes agent.toml declares, what a person is asked, which answer counts, what
// is signed, and what a model is told afterwards. Everything in it is a function
// of its arguments, with no clock, no randomness and no goroutine, except the
// [Executor], which sends one HTTP request. So the engine can fold a run's log
// through it again, after a restart or at another replica, and gets the same
// prompts, the same claims and the same token.
//
//	model's call ─ Propose ─► Proposal ─ Next(who, answers) ─┬─► Prompt  ask, then call Next again
//	                                                         ├─► Result  tell the model, done
//	body ─ DecodeResponse ─► Response ─ Prompt.Accept ─► Answer
//	                                                         └─► Claims  journal, then Execute:
//	                                                             Mint ─► POST ─► Outcome ─► Result
//
// What is executed is what was shown: resource, current state and note are read
// once, from the call that the model proposed; the choice and the reason come
// from the person, and nothing that a model or a plugin says is looked at
// between the answer and the execution.
//
// Sections in comments are those of the agent-service contract.
package approval

import (
	"fmt"
	"slices"
	"strings"

	"weir/abi"
	"weir/host/fault"
)

// Catalog is the closed set of declared actions of one policy. It never changes
// and may be used concurrently.
type Catalog struct {
	tools  []Tool
	byTool map[string]*Action
}

// Tool is a declared action as a model sees it.
type Tool struct {
	Name        string
	Description string
	Schema      []byte // JSON Schema of the arguments, a closed object; read-only
}

// Options of a catalog.
type Options struct {
	// Taken lists names of other tools that models can call; an action with
	// one of these names is refused. Default: none.
	Taken []string
}

// New checks the declared actions completely and returns their catalog. Without
// actions it is empty, which is how a read-only agent looks. Its errors are of
// kind fault.Invalid and name the action.
func New(actions []Action, opts Options) (*Catalog, error) {
	c := &Catalog{byTool: map[string]*Action{}}
	for _, a := range actions {
		a := a.clone()
		switch {
		case c.byTool[a.Tool] != nil:
			return nil, fault.New(fault.Invalid, "action %s: declared twice", quote(a.Tool))
		case slices.Contains(opts.Taken, a.Tool):
			return nil, fault.New(fault.Invalid, "action %s: another tool has this name", quote(a.Tool))
		}
		if err := a.validate(); err != nil {
			return nil, fault.New(fault.Invalid, "action %s: %w", quote(a.Tool), err)
		}
		c.byTool[a.Tool] = &a
		c.tools = append(c.tools, Tool{Name: a.Tool, Description: a.Description, Schema: a.schema()})
	}
	slices.SortFunc(c.tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return c, nil
}

// Tools returns the actions by name, as models see them. The slice belongs to
// the catalog.
func (c *Catalog) Tools() []Tool { return c.tools }

// Has tells whether a tool is a declared action.
func (c *Catalog) Has(tool string) bool { return c.byTool[tool] != nil }

// Codes of Propose's errors.
const (
	// CodeSchema is a call that policy refuses like that of any tool (5.5): the
	// model reads it after "Tool call refused by policy: ".
	CodeSchema = "schema"
	// CodeProposal is a call that fits the schema and proposes nothing: the
	// model reads it in the object of [BadProposal].
	CodeProposal = "proposal"
)

// Propose reads a call that a model proposed: absent or blank arguments are {},
// everything else is held against the schema (5.6) without coercion, and texts
// are trimmed. The error's text is for the model and names arguments, never
// values; its code says in which form.
func (c *Catalog) Propose(tool string, arguments abi.Raw) (*Proposal, error) {
	a := c.byTool[tool]
	if a == nil {
		return nil, fault.Coded(fault.NotFound, CodeSchema, "tool %s is not available", quote(tool))
	}
	return a.propose(arguments)
}

// Result objects that need no proposal (3.7).

// Disabled is the result of a call of a declared action in a deployment without
// approvals.
func Disabled() abi.Raw {
	return notProposed("State-changing actions are disabled in this deployment.")
}

// BadProposal is the result of a call that proposes nothing; reason is the
// error of [Catalog.Propose], or why an output guard would not let it be shown.
func BadProposal(reason error) abi.Raw { return notProposed(reason.Error()) }

func notProposed(message string) abi.Raw {
	return object(field{"approved", false}, field{"message", message})
}

// quote shows a name from outside, capped.
func quote(name string) string {
	const most = 64
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return string(jsonString(name))
}

func limit(what string, n, most int) error {
	return fmt.Errorf("%s: expected at most %d bytes, got %d", what, most, n)
}
