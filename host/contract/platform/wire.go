package platform

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Bounds of a manifest. Plugins write parts of it and everybody may ask for it,
// so one of them must not make it large. What is longer is cut.
const (
	maxSkills = 64
	maxList   = 16   // tags, and examples, of one skill
	maxShort  = 128  // bytes of an id, a name or a tag
	maxLong   = 1024 // bytes of a description or an example
)

// health is the body of [PathHealth].
type health struct {
	Status  string `json:"status"`
	Service string `json:"service"`
	Version string `json:"version"`
}

func (h health) encode() []byte { return marshal(h) }

// Manifest says what the agent is (section 6). Lists are always arrays.
type Manifest struct {
	Name         string       `json:"name"` // for people
	Version      string       `json:"version"`
	Description  string       `json:"description"`
	URL          string       `json:"url"` // relative to where the manifest was found
	Skills       []Skill      `json:"skills"`
	Capabilities Capabilities `json:"capabilities"`
}

// Skill is one thing that the agent can do.
type Skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples"`
}

// Capabilities say how the agent is talked to.
type Capabilities struct {
	Streaming      bool `json:"streaming"`
	Conversational bool `json:"conversational"` // earlier turns count
	DirectAPI      bool `json:"direct_api"`     // there is a route for clients, beside any protocol between agents
}

// encode returns the manifest within its bounds. Of skills with one id only the
// first stands.
func (m Manifest) encode() []byte {
	skills := make([]Skill, 0, len(m.Skills))
	seen := map[string]bool{}
	for _, s := range m.Skills {
		s = s.bounded()
		if !seen[s.ID] && len(skills) < maxSkills {
			skills = append(skills, s)
		}
		seen[s.ID] = true
	}
	m.Skills = skills
	if m.URL == "" {
		m.URL = "/"
	}
	return marshal(m)
}

func (s Skill) bounded() Skill {
	s.ID, s.Name, s.Description = clip(s.ID, maxShort), clip(s.Name, maxShort), clip(s.Description, maxLong)
	s.Tags, s.Examples = clipAll(s.Tags, maxShort), clipAll(s.Examples, maxLong)
	return s
}

func clipAll(list []string, most int) []string {
	out := make([]string, 0, min(len(list), maxList))
	for _, s := range list[:min(len(list), maxList)] {
		out = append(out, clip(s, most))
	}
	return out
}

// clip cuts text between two runes.
func clip(s string, most int) string {
	if len(s) > most {
		for most > 0 && !utf8.RuneStart(s[most]) {
			most--
		}
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "")
}

func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("platform: a value of texts has no JSON form: " + err.Error())
	}
	return data
}
