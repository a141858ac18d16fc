package compare

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"weir/abi/strictjson"
	"weir/cmd/weir/internal/compare/client"
)

// Harness says which program compares.
type Harness struct {
	Version string `json:"version"`
	Commit  string `json:"commit"` // empty: not known
	Dirty   *bool  `json:"dirty"`  // null: not known
}

// Provenance is what an agent says it is, and whether that holds together
// (11.4).
type Provenance struct {
	Name        string `json:"name"`
	URL         string `json:"url"`
	Runtime     string `json:"agent_runtime"`
	BuildCommit string `json:"build_commit"`
	Model       string `json:"model"`
	GuardModel  string `json:"guard_model"`
	PromptSHA   string `json:"prompt_sha256"`
	GuardSHA    string `json:"guardrails_prompts_sha256"`
	ConfigSHA   string `json:"config_sha256"`
	Generation  string `json:"generation,omitempty"`
	ToolCount   int    `json:"tool_count"`
	Checks      Checks `json:"checks"`
	Consistent  bool   `json:"consistent"`
	// Reasons say why it is not consistent, Unchecked what could not be looked at.
	Reasons   []string `json:"reasons"`
	Unchecked []string `json:"unchecked"`
}

// Checks are those of 11.4 and one more; null: could not be made.
type Checks struct {
	Prompt       *bool `json:"prompt_matches_config"`
	Guardrails   *bool `json:"guardrail_prompts_match_config"`
	BuiltHere    *bool `json:"agent_built_from_harness_commit"`
	SameAtTheEnd *bool `json:"same_at_the_end"`
}

// Prompts are the digests of an evaluator's copy of the configuration.
type Prompts struct {
	System     string // of workflow.system_prompt
	Guardrails string // of guardrails.prompts, as canonical JSON
}

// ReadPrompts computes the digests from an evaluator's YAML file as 11.4 and
// section 7 say: workflow.system_prompt and the list guardrails.prompts. `weir
// config export-evaluator` writes such a file.
func ReadPrompts(file []byte) (*Prompts, error) {
	var config struct {
		Workflow struct {
			SystemPrompt *string `json:"system_prompt"`
		} `json:"workflow"`
		Guardrails struct {
			Prompts json.RawMessage `json:"prompts"`
		} `json:"guardrails"`
	}
	data, err := yaml.YAMLToJSON(file)
	if err != nil {
		return nil, errors.New("expected YAML")
	}
	if err := json.Unmarshal(data, &config); err != nil || config.Workflow.SystemPrompt == nil || len(config.Guardrails.Prompts) == 0 {
		return nil, errors.New("expected the members workflow.system_prompt and guardrails.prompts")
	}
	canonical, err := strictjson.Canonical(nil, config.Guardrails.Prompts)
	if err != nil {
		return nil, fmt.Errorf("guardrails.prompts: %w", err)
	}
	return &Prompts{digest([]byte(*config.Workflow.SystemPrompt)), digest(canonical)}, nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// said is an answer of /version, or why there is none.
type said struct {
	version client.Version
	err     error
}

func (r *run) versions(ctx context.Context) (all [2]said) {
	for i, p := range r.parties {
		all[i].version, all[i].err = p.Agent.Version(ctx)
	}
	return all
}

// provenance compares what the agents said before and after the questions.
func (r *run) provenance(before, after [2]said) {
	for i, p := range r.parties {
		*r.result.Provenance.side(i) = provenanceOf(p, before[i], after[i], r.opts)
	}
	r.result.Differs = differing(before[0].version, before[1].version)
}

func provenanceOf(party Party, before, after said, opts Options) Provenance {
	v := before.version
	tools, _ := v["tools_exposed"].([]any)
	p := Provenance{
		Name: party.Name, URL: party.Agent.Origin(), Runtime: v.Text("agent_runtime"), BuildCommit: v.Text("build_commit"),
		Model: v.Text("model"), GuardModel: v.Text("guard_model"), PromptSHA: v.Text("prompt_sha256"), GuardSHA: v.Text("guardrails_prompts_sha256"),
		ConfigSHA: v.Text("config_sha256"), Generation: v.Text("generation"), ToolCount: len(tools),
		Reasons: []string{}, Unchecked: []string{},
	}
	switch {
	case before.err != nil:
		p.Runtime = "unknown"
		p.Reasons = append(p.Reasons, "/version could not be read: "+before.err.Error())
	case p.Runtime == "":
		p.Runtime = "nat" // the one runtime that does not say so, by 11.4
	}
	if before.err == nil {
		p.check(v, after, opts)
	}
	p.Consistent = len(p.Reasons) == 0
	return p
}

func (p *Provenance) check(v client.Version, after said, opts Options) {
	if opts.Prompts == nil {
		p.Unchecked = append(p.Unchecked, "prompts: no evaluator's configuration was given")
	} else {
		p.Checks.Prompt = p.holds(p.PromptSHA == opts.Prompts.System, "prompt_sha256 is not that of the configuration")
		p.Checks.Guardrails = p.holds(p.GuardSHA == opts.Prompts.Guardrails, "guardrails_prompts_sha256 is not that of the configuration")
	}
	if known(p.BuildCommit) && known(opts.Harness.Commit) {
		same := strings.HasPrefix(p.BuildCommit, opts.Harness.Commit) || strings.HasPrefix(opts.Harness.Commit, p.BuildCommit)
		p.Checks.BuiltHere = p.holds(same, "the agent was built from another commit than the harness")
	} else {
		p.Unchecked = append(p.Unchecked, "build: one of the two commits is not known")
	}
	switch {
	case after.err != nil:
		p.Checks.SameAtTheEnd = p.holds(false, "/version could not be read at the end: "+after.err.Error())
	default:
		var names []string
		for _, d := range differing(v, after.version) {
			names = append(names, d.Name)
		}
		p.Checks.SameAtTheEnd = p.holds(len(names) == 0, "the agent changed during the run: "+strings.Join(names, ", "))
	}
}

// holds notes the reason of a check that does not hold.
func (p *Provenance) holds(ok bool, reason string) *bool {
	if !ok {
		p.Reasons = append(p.Reasons, reason)
	}
	return &ok
}

// known tells a commit from the words that stand for none.
func known(commit string) bool {
	return len(commit) >= 7 && commit != "unknown" && commit != "development"
}

// differing are the members in which two versions differ. A long value is cut:
// it is somebody else's text.
func differing(a, b client.Version) []Differing {
	var names []string
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, there := a[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	out := []Differing{}
	for _, name := range names {
		if x, y := show(a, name), show(b, name); x != y {
			out = append(out, Differing{name, x, y})
		}
	}
	return out
}

func show(v client.Version, name string) string {
	value, there := v[name]
	if !there {
		return "(not said)"
	}
	text, ok := value.(string)
	if !ok {
		text = marshal(value)
	}
	const most = 300
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "… " + digest([]byte(text))[:12]
	}
	return text
}
