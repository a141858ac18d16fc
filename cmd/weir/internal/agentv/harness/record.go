package harness

import (
	"context"
	"encoding/json"
	"slices"

	"weir/cmd/weir/internal/agentv/ledger"
	"weir/cmd/weir/internal/agentv/reply"
)

// start writes what a ledger begins with. It waits for the agent's first reply,
// which names the agent, because AgentV's tools look for the name here.
func (r *run) start(snapshot []byte) {
	h := r.result.Hashes
	r.ledger.Defer("run_start", func() []ledger.Field {
		return []ledger.Field{
			ledger.F("scenario", r.scenario.ID), ledger.F("k_attempts", r.opts.Attempts),
			ledger.F("metadata", ordered{
				ledger.F("harness", "weir"), ledger.F("aes_version", json.Number("1.4")),
				ledger.F("agent_name", r.result.AgentName), ledger.F("agent", r.result.Agent), ledger.F("protocol", r.result.Protocol),
				ledger.F("payload", string(r.opts.Payload)),
				ledger.F("topology_hash", h.Topology), ledger.F("tool_dna_hash", h.Tools),
				ledger.F("provisioning_hash", h.Provisioning), ledger.F("fingerprint_v1", h.Fingerprint),
				ledger.F("environmental_snapshot", json.RawMessage(snapshot)),
			}),
		}
	})
	r.ledger.Append("strategy_start", ledger.F("strategy", "pass_at_k"), ledger.F("k", r.opts.Attempts))
	r.ledger.Append("routing_resolved", ledger.F("capabilities", append([]string{}, r.scenario.Capabilities...)), ledger.F("resolved_protocol", r.result.Protocol),
		ledger.F("resolved_endpoint", r.result.Agent), ledger.F("source", r.target.Source))
	var order []string
	for _, n := range r.scenario.Nodes {
		order = append(order, n.ID)
	}
	r.ledger.Append("phase_start", ledger.F("phase", "workflow_sort"))
	r.ledger.Append("phase_end", ledger.F("phase", "workflow_sort"), ledger.F("order", order))
	for _, notice := range r.result.Notices {
		r.trouble("notice", notice)
	}
	r.ledger.Append("phase_start", ledger.F("phase", "pass_at_k_execution"), ledger.F("k", r.opts.Attempts))
}

// ordered is an object whose members keep their order.
type ordered []ledger.Field

// MarshalJSON implements json.Marshaler.
func (o ordered) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, f := range o {
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.Value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// meet takes the agent's name and oddities from its reply, which is nil when
// there was none, and lets the ledger begin.
func (r *run) meet(p *reply.Reply) {
	if p != nil {
		if p.Name != "" {
			r.result.AgentName = p.Name
		}
		for _, odd := range p.Oddities {
			if !slices.Contains(r.result.Oddities, odd) {
				r.result.Oddities = append(r.result.Oddities, odd)
				defer r.trouble("oddity", odd)
			}
		}
	}
	r.ledger.Release()
}

// trouble writes something down that people may want to know.
func (r *run) trouble(category, text string) {
	r.ledger.Append("adapter_debug", ledger.F("message", text), ledger.F("category", category))
}

// end computes what the run came to and writes it down.
func (r *run) end(ctx context.Context) {
	out := r.result
	out.PassRate = float64(out.Successful) / float64(out.Attempts)
	if out.Successful > 0 {
		out.PassAtK = 1
	}
	out.Passed = ctx.Err() == nil && out.PassRate >= r.opts.PassRate
	out.Status = status(out.Passed)
	if ctx.Err() != nil {
		out.Status = cancelled
	}
	out.Attempts = len(out.Tries)
	r.ledger.Release()
	r.ledger.Append("phase_end", ledger.F("phase", "pass_at_k_execution"))
	r.ledger.Append("strategy_end", ledger.F("strategy", "pass_at_k"), ledger.F("status", status(out.Passed)))
	metrics := map[string]any{"pass_rate": out.PassRate}
	if mean, ok := r.toolCorrectness(); ok {
		metrics["tool_correctness"] = mean
	}
	if r.asked > 0 {
		metrics["avg_latency"] = r.waited.Seconds() / float64(r.asked)
	}
	r.ledger.Append("run_end", ledger.F("status", out.Status), ledger.F("pass_at_k", out.PassAtK),
		ledger.F("successful_attempts", out.Successful), ledger.F("total_attempts", out.Attempts), ledger.F("metrics", metrics),
		ledger.F("metadata", ordered{
			ledger.F("args", ordered{ledger.F("attempts", r.opts.Attempts), ledger.F("pass_rate", r.opts.PassRate), ledger.F("payload", string(r.opts.Payload))}),
			ledger.F("plugin_provenance", struct{}{}), ledger.F("protocol", out.Protocol), ledger.F("agent", out.Agent), ledger.F("agent_name", out.AgentName),
		}))
}

// toolCorrectness is the mean of that metric, where it was asked for.
func (r *run) toolCorrectness() (mean float64, ok bool) {
	n := 0
	for _, t := range r.result.Tries {
		for _, node := range t.Nodes {
			for _, m := range node.Metrics {
				if m.Metric == "tool_call_correctness" {
					mean += m.Value
					n++
				}
			}
		}
	}
	return mean / float64(max(n, 1)), n > 0
}
