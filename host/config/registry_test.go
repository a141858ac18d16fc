package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Section 5.1 of the platform's specification: without REGISTRY_URL nobody is
// told, and the agent's own address follows from its name.
func TestRegistry(t *testing.T) {
	c := mustLoad(t, "[agent]\nname = 'my-agent'\n"+minimal, keys())
	if want := (Registry{SelfURL: "http://my-agent.agents.svc.cluster.local", Attempts: 10}); c.Registry != want {
		t.Errorf("by default %+v, want %+v", c.Registry, want)
	}
	env := keys().with("REGISTRY_URL", " http://gateway ").with("AGENT_SELF_URL", "http://self:8000/base")
	c = mustLoad(t, minimal+"[registry]\nurl = 'http://other'\nattempts = 3\n", env)
	if want := (Registry{URL: "http://gateway", SelfURL: "http://self:8000/base", Attempts: 3}); c.Registry != want {
		t.Errorf("got %+v, want %+v", c.Registry, want)
	}
}

func TestRegistryRefusals(t *testing.T) {
	const base = ": expected an http or https URL with a host, without user, password, query or fragment"
	for url, want := range map[string]string{
		"http://gateway/base": "", "https://gateway:8443": "",
		"http://u:canary@gateway": base, "http://gateway?canary": base, "http://gateway?": base, "gateway": base, "http://": base, "http://g#canary": base,
	} {
		for _, name := range []string{"REGISTRY_URL", "AGENT_SELF_URL"} {
			_, err := load(t, minimal, keys().with(name, url))
			switch {
			case want == "" && err != nil, want != "" && (err == nil || err.Error() != "environment "+name+want):
				t.Errorf("%s %s: %v", name, url, err)
			case err != nil && strings.Contains(err.Error(), "canary"):
				t.Errorf("the address is quoted: %v", err)
			}
		}
	}
	_, err := load(t, minimal+"[registry]\nattempts = 2\n", keys())
	wantProblems(t, err, `agent.toml: [registry] attempts: expected 3 to 1000, got 2`)
}

// Section 6: skills are tables, written in either of TOML's forms.
func TestSkills(t *testing.T) {
	want := []Skill{{ID: "a_b", Name: "A", Description: "Does a.", Tags: []string{"x"}, Examples: []string{"Do a."}}, {ID: "b", Name: "B", Description: "Does b."}}
	for _, text := range []string{
		"[[agent.skills]]\nid='a_b'\nname='A'\ndescription='Does a.'\ntags=['x']\nexamples=['Do a.']\n[[agent.skills]]\nid='b'\nname='B'\ndescription='Does b.'\n",
		"[agent]\nskills = [{id='a_b',name='A',description='Does a.',tags=['x'],examples=['Do a.']}, {id='b',name='B',description='Does b.'}]\n",
	} {
		if d := cmp.Diff(want, mustLoad(t, text+minimal, keys()).Agent.Skills); d != "" {
			t.Errorf("%s\n(-want +got)\n%s", text, d)
		}
	}
	if got := mustLoad(t, "[agent]\nskills = []\n"+minimal, keys()).Agent.Skills; len(got) != 0 {
		t.Errorf("no skills: %+v", got)
	}
	for text, want := range map[string][]string{
		"[agent]\nskills = 'a'\n":   {`agent.toml: [agent] skills: expected an array of tables, got a string`},
		"[agent]\nskills = ['a']\n": {`agent.toml: [agent] skills: expected an array of tables, got a string`},
		"[[agent.skills]]\nid='A'\nnmae='x'\ntags='y'\n[[agent.skills]]\nid='b'\nname='B'\ndescription='B.'\n[[agent.skills]]\nid='b'\nname='B'\ndescription='B.'\n": {
			`agent.toml: unknown key [agent.skills.1] nmae, did you mean "name"?`,
			`agent.toml: [agent.skills.1] tags: expected an array of strings, got a string`,
			`agent.toml: [agent.skills.1] id: expected a name of a-z, 0-9, _ and -, at most 64, got "A"`,
			`agent.toml: [agent.skills.1] name: expected a name that people read`,
			`agent.toml: [agent.skills.1] description: expected a sentence about the skill`,
			`agent.toml: [agent.skills.3] id: expected each skill once, got "b" again`,
		},
	} {
		_, err := load(t, text+minimal, keys())
		wantProblems(t, err, want...)
	}
}

// What the manifest says is no behaviour: it is not in a generation's identity.
func TestSkillsAreNoPolicy(t *testing.T) {
	a := mustLoad(t, minimal, keys())
	b := mustLoad(t, "[[agent.skills]]\nid='a'\nname='A'\ndescription='A.'\n"+minimal, keys())
	if string(a.Policy()) != string(b.Policy()) {
		t.Error("skills are in the policy")
	}
}
