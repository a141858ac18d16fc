package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/config"
	"weir/host/plugin"
	"weir/host/run"
)

// partsOf are the identities of what decides in a policy. A plugin's is that of
// its module, its configuration and its prompts, not of its limits: a run that
// no limit stopped is the same under others.
func partsOf(d *draft, g *plugin.Generation) []run.Part {
	var parts []run.Part
	for _, s := range d.policy.Plugins {
		if s.Name == d.cfg.Agent.Workflow {
			parts = append(parts, run.Part{Name: s.Name, ID: partID(&s, nil), Stages: run.StageWorkflow})
		}
	}
	for _, c := range d.cfg.Guards() {
		if c.Mode == config.ModeMonitor {
			continue
		}
		for _, s := range d.policy.Plugins {
			if s.Name == c.Name {
				parts = append(parts, run.Part{Name: s.Name, Stages: stages(g.Plugin(s.Name)),
					ID: partID(&s, []any{c.OnError, c.Roles})})
			}
		}
	}
	o := d.cfg.Guard
	return append(parts, run.Part{Name: "[guard]", Stages: run.StageOutput,
		ID: shortID([]any{o.CutNotice, o.OversizeNotice, o.MaxAnswerChars})})
}

// approvalsPart says whether a person could be asked.
func approvalsPart(on bool) run.Part {
	p := run.Part{Name: run.PartApprovals, ID: "off", Stages: run.StageApproval}
	if on {
		p.ID = "on"
	}
	return p
}

func stages(p *plugin.Plugin) string {
	out := ""
	for _, s := range []struct {
		hook   abi.Hook
		letter string
	}{
		{abi.HookCheckInput, run.StageInput}, {abi.HookCheckToolCall, run.StageToolCall},
		{abi.HookCheckToolResult, run.StageToolResult}, {abi.HookCheckOutput, run.StageOutput},
	} {
		if p.Has(s.hook) {
			out += s.letter
		}
	}
	return out
}

func partID(s *plugin.Spec, more []any) string {
	settings, err := strictjson.Canonical(nil, s.Config)
	if err != nil { // none
		settings = nil
	}
	return shortID([]any{s.Digest(), string(settings), s.Prompts, more})
}

func shortID(of any) string {
	body, err := json.Marshal(of)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}
