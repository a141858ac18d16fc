package approval_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"weir/abi"
	"weir/host/approval"
	"weir/host/fault"
)

func notApplied(message string) string {
	return `{"approved":false,"resource_id":"TKT-1001","action":"set_ticket_priority","message":"` + message + `"}`
}

// 3.5 and 3.7: every way in which a proposal comes to nothing, and the one in
// which it does not.
func TestNext(t *testing.T) {
	cancelled, expired := approval.Answer{Outcome: approval.Cancelled}, approval.Answer{Outcome: approval.Expired}
	then := func(first string, second approval.Answer) []approval.Answer {
		return append(answered(first), second)
	}
	changed := func(f func(*approval.Authority)) approval.Authority {
		who := rep()
		f(&who)
		return who
	}
	const unsigned = "approval requires an authenticated actor and a gateway request id. Nothing was changed."
	const recognised = "The selected priority is not recognised. Nothing was changed."
	tests := []struct {
		name    string
		who     approval.Authority
		answers []approval.Answer
		want    string // "radio", "text", "claims", or the message
	}{
		{"nobody was asked yet", rep(), nil, "radio"},
		{"a choice", rep(), answered("high"), "text"},
		{"another choice than the proposed one", rep(), answered("low"), "text"},
		{"a choice and a reason", rep(), answered("high", "Twice."), "claims"},
		{"an answer too many", rep(), answered("high", "Twice.", "more"), "claims"},
		{"cancelled", rep(), []approval.Answer{cancelled}, "The user cancelled."},
		{"expired", rep(), []approval.Answer{expired}, "The approval request expired. Nothing was changed."},
		{"kept", rep(), answered("medium"), "The user kept the current priority 'medium'. Nothing was changed."},
		{"kept, and a reason all the same", rep(), answered("medium", "x"), "The user kept the current priority 'medium'. Nothing was changed."},
		{"outside the list", rep(), answered("critical"), recognised},
		{"almost in the list", rep(), answered("High"), recognised},
		{"no reason: cancelled", rep(), then("high", cancelled), "The user cancelled."},
		{"no reason: expired", rep(), then("high", expired), "The approval request expired. Nothing was changed."},
		{"no reason: empty", rep(), then("high", approval.Answer{Outcome: approval.Answered}), "The user cancelled."},
		{"an outcome of another version", rep(), []approval.Answer{{Outcome: "approved", Value: "high"}}, "The user cancelled."},
		{"a request id of our own", changed(func(a *approval.Authority) { a.Gateway = false }), nil, approval.MessageNoGateway},
		{"and answers all the same", changed(func(a *approval.Authority) { a.Gateway = false }), answered("high", "Twice."), approval.MessageNoGateway},
		{"a blank actor", changed(func(a *approval.Authority) { a.Actor = " " }), answered("high", "Twice."), unsigned},
		{"a blank request", changed(func(a *approval.Authority) { a.RequestID = "" }), nil, unsigned},
		{"no nonce", changed(func(a *approval.Authority) { a.Nonce = "" }), answered("high", "x"), "approval requires a nonce. Nothing was changed."},
	}
	outcomes := map[string]string{ // as section 9 calls them
		"The user cancelled.": "cancelled", "The approval request expired. Nothing was changed.": "timed_out",
		"The user kept the current priority 'medium'. Nothing was changed.": "kept", recognised: "refused_unknown_choice",
		approval.MessageNoGateway: "refused_no_gateway_request", unsigned: "mint_refused", "approval requires a nonce. Nothing was changed.": "mint_refused",
	}
	c := catalogOf(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			step := escalation(t, c, "A note.").Next(tt.who, tt.answers)
			switch tt.want {
			case "radio", "text":
				if step.Prompt == nil || string(step.Prompt.Kind) != tt.want {
					t.Errorf("%+v", step)
				}
			case "claims":
				if step.Claims == nil {
					t.Errorf("%s", step.Result)
				}
			default:
				wantText(t, "result", string(step.Result), notApplied(tt.want))
			}
			if outcome := outcomes[tt.want]; step.Outcome != outcome || (outcome == "") != (step.Result == nil) {
				t.Errorf("outcome %q, want %q", step.Outcome, outcome)
			}
		})
	}
	wantText(t, "full", string(escalation(t, c, "").NotApplied(approval.MessageFull)), notApplied("too many interactions are pending. Nothing was changed."))
	wantText(t, "disabled", string(approval.Disabled()), `{"approved":false,"message":"State-changing actions are disabled in this deployment."}`)
	wantText(t, "bad proposal", string(approval.BadProposal(errors.New("why"))), `{"approved":false,"message":"why"}`)
	wantText(t, "no gateway", approval.MessageNoGateway, "Human approval requires an authenticated gateway request. Nothing was changed.")
}

// The fold: a log of answers is applied again from its start, at any time, by
// somebody else. Each prefix gives what it gave when it was the whole log, and
// whatever is said ends what was going on, or is followed by what comes next.
func TestNextIsStableUnderReplay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	values := []string{"low", "medium", "high", "urgent", "critical", "", " ", "Twice.", "__CANCEL__"}
	outcomes := []string{approval.Answered, approval.Answered, approval.Answered, approval.Cancelled, approval.Expired, "approved"}
	seen := map[string]int{}
	first, second := catalogOf(t), catalogOf(t)
	for range 3000 {
		who := rep()
		who.Gateway = random.IntN(8) > 0
		who.Now = time.Unix(random.Int64N(1<<33), random.Int64N(1e9))
		note := []string{"", "A note."}[random.IntN(2)]
		var answers []approval.Answer
		for range random.IntN(4) {
			answers = append(answers, approval.Answer{Outcome: outcomes[random.IntN(len(outcomes))], Value: values[random.IntN(len(values))]})
		}
		// Two lives that share nothing but the log.
		one, other := escalation(t, first, note), escalation(t, second, note)
		ended := false
		for n := range len(answers) + 1 {
			step := one.Next(who, answers[:n])
			if again := other.Next(who, append([]approval.Answer{}, answers[:n]...)); !reflect.DeepEqual(step, again) {
				t.Fatalf("after %d of %+v:\n%+v\nagain:\n%+v", n, answers, step, again)
			}
			set := 0
			for _, there := range []bool{step.Prompt != nil, step.Result != nil, step.Claims != nil} {
				if there {
					set++
				}
			}
			if set != 1 {
				t.Fatalf("%d fields are set: %+v", set, step)
			}
			if ended && step.Prompt != nil {
				t.Fatalf("asked again after the end: %+v", answers[:n])
			}
			ended = step.Prompt == nil
			seen[fmt.Sprintf("%d %v %v", n, step.Prompt != nil, step.Claims != nil)]++
			if !ended && n >= 2 {
				t.Fatalf("a third prompt after %+v", answers[:n])
			}
		}
	}
	for _, what := range []string{"0 true false", "0 false false", "1 true false", "1 false false", "2 false true", "2 false false"} {
		if seen[what] == 0 {
			t.Errorf("never seen: %s", what)
		}
	}
}

// 5.5 and 5.6: no coercion, names and never values, and the two forms of a
// refusal.
func TestPropose(t *testing.T) {
	const good = `"ticket_id":"TKT-1001","current_priority":"medium","requested_priority":"high","summary":"s"`
	without := func(name, value string) string {
		return "{" + strings.Trim(strings.Replace(","+good, `,"`+name+`":"`+value+`"`, "", 1), ",") + "}"
	}
	with := func(member string) string { return "{" + good + "," + member + "}" }
	instead := func(name, value, other string) string {
		return "{" + strings.Replace(good, `"`+name+`":"`+value+`"`, `"`+name+`":`+other, 1) + "}"
	}
	tests := []struct{ name, tool, arguments, want string }{
		{"all that is required", tool, "{" + good + "}", ""},
		{"a note", tool, with(`"note":"n"`), ""},
		{"no note", tool, with(`"note":null`), ""},
		{"white space", tool, " {" + good + "}\n", ""},
		{"the longest summary", tool, instead("summary", "s", `"`+strings.Repeat("é", 1500)+`"`), ""},
		{"the longest note", tool, with(`"note":"` + strings.Repeat("x", 4000) + `"`), ""},
		{"the same priority", tool, instead("requested_priority", "high", `"medium"`), ""},

		{"another tool", "get_ticket", "{}", `schema: tool "get_ticket" is not available`},
		{"the tool in another case", "Ticket_Priority_Change", "{}", `schema: tool "Ticket_Priority_Change" is not available`},
		{"nothing", tool, "", `schema: missing required argument "ticket_id"`},
		{"blank", tool, " \n", `schema: missing required argument "ticket_id"`},
		{"not JSON", tool, `{"ticket_id":`, `schema: tool arguments are not valid JSON: offset 13: unexpected end, expected a value`},
		{"twice", tool, with(`"summary":"other"`), `schema: tool arguments are not valid JSON: offset 94: repeated field "summary"`},
		{"no object", tool, `["TKT-1001"]`, `schema: arguments must be a JSON object`},
		{"too large", tool, with(`"note":"` + strings.Repeat("x", 16384) + `"`), `schema: tool arguments are too large`},
		{"an unknown argument before a missing one", tool, `{"actor_id":"boss"}`, `schema: unknown argument "actor_id"`},
		{"a decision", tool, with(`"approved":true`), `schema: unknown argument "approved"`},
		{"no resource", tool, without("ticket_id", "TKT-1001"), `schema: missing required argument "ticket_id"`},
		{"null resource", tool, instead("ticket_id", "TKT-1001", "null"), `schema: missing required argument "ticket_id"`},
		{"no current state", tool, without("current_priority", "medium"), `schema: missing required argument "current_priority"`},
		{"no request", tool, without("requested_priority", "high"), `schema: missing required argument "requested_priority"`},
		{"no summary", tool, without("summary", "s"), `schema: missing required argument "summary"`},
		{"a number", tool, instead("ticket_id", "TKT-1001", "1001"), `schema: argument "ticket_id" must be string`},
		{"an object", tool, instead("summary", "s", `{"a":1}`), `schema: argument "summary" must be string`},
		{"a note that is none", tool, with(`"note":[]`), `schema: argument "note" must be string or null`},
		{"no priority", tool, instead("current_priority", "medium", `"critical"`), `schema: argument "current_priority" must be one of the allowed values`},
		{"a priority with space", tool, instead("requested_priority", "high", `" high"`), `schema: argument "requested_priority" must be one of the allowed values`},
		{"an empty resource", tool, instead("ticket_id", "TKT-1001", `""`), `schema: argument "ticket_id" has the wrong length (allowed 1..=4096 characters)`},
		{"an empty summary", tool, instead("summary", "s", `""`), `schema: argument "summary" has the wrong length (allowed 1..=1500 characters)`},
		{"a long summary", tool, instead("summary", "s", `"`+strings.Repeat("é", 1501)+`"`), `schema: argument "summary" has the wrong length (allowed 1..=1500 characters)`},
		{"a long note", tool, with(`"note":"` + strings.Repeat("x", 4001) + `"`), `schema: argument "note" has the wrong length (allowed 0..=4000 characters)`},

		{"a blank resource", tool, instead("ticket_id", "TKT-1001", `" \t"`), `proposal: argument "ticket_id" must not be blank`},
		{"a blank summary", tool, instead("summary", "s", `"\u00a0"`), `proposal: argument "summary" must not be blank`},
		{"a resource of two lines", tool, instead("ticket_id", "TKT-1001", `"TKT-1001\nSummary: safe"`), `proposal: argument "ticket_id" must not contain control or invisible characters`},
		{"a resource with what nobody sees", tool, instead("ticket_id", "TKT-1001", `"TKT-\u202e1001"`), `proposal: argument "ticket_id" must not contain control or invisible characters`},
	}
	c := catalogOf(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := c.Propose(tt.tool, abi.Raw(tt.arguments))
			if tt.want == "" {
				if err != nil || p.Resource() != "TKT-1001" || p.Tool() != tool || p.Action() != "set_ticket_priority" {
					t.Errorf("%+v, %v", p, err)
				}
				return
			}
			if err == nil {
				t.Fatal("taken")
			}
			wantText(t, "refusal", fault.CodeOf(err)+": "+err.Error(), tt.want)
		})
	}
}

func TestProposalIsTrimmedAndKept(t *testing.T) {
	p := escalation(t, catalogOf(t), "\u2003 Call her. \n")
	if p.Resource() != "TKT-1001" || p.Note() != "Call her." || p.Summary() != "Delayed delivery, asked twice." {
		t.Errorf("%q %q %q", p.Resource(), p.Note(), p.Summary())
	}
	if got := strings.Join(p.Signed(), "|"); got != "TKT-1001|Call her." {
		t.Errorf("signed: %s", got)
	}
	masked := p.WithSummary("masked")
	if p.Summary() == "masked" || masked.Note() != p.Note() {
		t.Error("the original changed, or more than the summary")
	}
	one, other := p.Next(rep(), answered("high", "x")), masked.Next(rep(), answered("high", "x"))
	if string(one.Claims) != string(other.Claims) {
		t.Error("the summary is signed")
	}
	if got := escalation(t, catalogOf(t), "").Signed(); len(got) != 1 {
		t.Errorf("signed without a note: %q", got)
	}
}
