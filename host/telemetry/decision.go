package telemetry

import (
	"encoding/json"

	"go.opentelemetry.io/otel/attribute"
)

// decision holds those members of the stages' decision objects that have an
// attribute. Everything else in them is a plugin's business and stays off the
// span. Reflection is fine here: there are two decisions in a run.
type decision struct {
	Outcome        string   `json:"outcome"`
	Blocked        bool     `json:"blocked"`
	LLMBlocked     *bool    `json:"llm_blocked"`
	Source         string   `json:"decision_source"`
	BlockMatches   []string `json:"deterministic_block_matches"`
	AllowMatches   []string `json:"deterministic_allow_matches"`
	Override       *bool    `json:"allow_override_applied"`
	Modified       bool     `json:"modified"`
	Oversized      bool     `json:"oversized"`
	PatternIndex   *int     `json:"pattern_index"`
	MaskedEntities counts   `json:"masked_entities"`
	Length         int      `json:"sanitized_output_length"`
}

type counts map[string]int

// read tolerates what does not fit: a span is not the place where a plugin's
// decision is judged.
func read(object []byte) decision {
	var d decision
	_ = json.Unmarshal(object, &d)
	return d
}

func inputDecision(object []byte) []attribute.KeyValue {
	if len(object) == 0 {
		return nil
	}
	d := read(object)
	attrs := []attribute.KeyValue{
		attribute.String(AttrGuardOutcome, code(d.Outcome)),
		attribute.Bool(AttrGuardBlocked, d.Blocked),
		attribute.Bool(AttrGuardFinalBlocked, d.Blocked),
		attribute.String(AttrGuardMatches, names(d.BlockMatches)),
		attribute.String(AttrGuardAllowMatches, names(d.AllowMatches)),
	}
	if d.Source != "" {
		attrs = append(attrs, attribute.String(AttrGuardSource, code(d.Source)))
	}
	if d.LLMBlocked != nil {
		attrs = append(attrs, attribute.Bool(AttrGuardLLMBlocked, *d.LLMBlocked))
	}
	if d.Override != nil {
		attrs = append(attrs, attribute.Bool(AttrGuardOverride, *d.Override))
	}
	return attrs
}

func outputDecision(object []byte) []attribute.KeyValue {
	if len(object) == 0 {
		return nil
	}
	d := read(object)
	masked := make(counts, len(d.MaskedEntities))
	for name, n := range d.MaskedEntities {
		masked[code(name)] += n
	}
	attrs := []attribute.KeyValue{
		attribute.String(AttrGuardOutcome, code(d.Outcome)),
		attribute.Bool(AttrGuardBlocked, d.Blocked),
		attribute.Bool(AttrGuardModified, d.Modified),
		attribute.Bool(AttrGuardOversized, d.Oversized),
		attribute.String(AttrGuardMaskedEntities, text(masked)),
		attribute.Int(AttrGuardOutputLength, d.Length),
	}
	if d.PatternIndex != nil {
		attrs = append(attrs, attribute.Int(AttrGuardPatternIndex, *d.PatternIndex))
	}
	return attrs
}

// names returns a JSON array of the names.
func names(list []string) string {
	out := make([]string, len(list))
	for i, name := range list {
		out[i] = code(name)
	}
	return text(out)
}

// text encodes a value that always can be.
func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
