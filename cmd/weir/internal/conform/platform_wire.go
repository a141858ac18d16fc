package conform

import (
	"context"
	"net/http"
)

// platformWire are the clauses that a gateway sees: sections 4 to 6.
func platformWire() []Clause {
	c := func(id, section string, level Level, text string, check func(context.Context, *subject) finding) Clause {
		return Clause{ID: id, Spec: SpecPlatform, Section: section, Level: level, Text: text, check: wire(check)}
	}
	return []Clause{
		c("health", "4", Must, "GET /health answers 200 and JSON with the status healthy, without a key", func(ctx context.Context, s *subject) finding {
			v, f := s.health(ctx)
			if f.outcome == Passed && v["status"] != "healthy" {
				return fail("expected the status \"healthy\", got %v", v["status"])
			}
			return f
		}),
		c("health-service", "4", Must, "/health names the service for people", func(ctx context.Context, s *subject) finding {
			v, f := s.health(ctx)
			if f.outcome != Passed {
				return skip("there is no health to read")
			}
			return texts(v, "service")
		}),
		c("health-version", "4", Should, "/health names the version", func(ctx context.Context, s *subject) finding {
			v, f := s.health(ctx)
			if f.outcome != Passed {
				return skip("there is no health to read")
			}
			return texts(v, "version")
		}),
		c("manifest", "4, 6", Must, "GET /.well-known/agent.json answers 200 and JSON with name, version, description and url, without a key", func(ctx context.Context, s *subject) finding {
			v, f := s.agentManifest(ctx)
			if f.outcome != Passed {
				return f
			}
			return texts(v, "name", "version", "description", "url")
		}),
		c("manifest-skills", "6", Must, "skills is an array of objects with id, name, description, tags and examples", func(ctx context.Context, s *subject) finding {
			v, f := s.agentManifest(ctx)
			if f.outcome != Passed {
				return skip("there is no manifest to read")
			}
			return skills(v)
		}),
		c("manifest-capabilities", "6", Must, "capabilities says streaming, conversational and direct_api, each true or false", func(ctx context.Context, s *subject) finding {
			v, f := s.agentManifest(ctx)
			if f.outcome != Passed {
				return skip("there is no manifest to read")
			}
			capabilities, _ := v["capabilities"].(map[string]any)
			for _, name := range []string{"streaming", "conversational", "direct_api"} {
				if _, ok := capabilities[name].(bool); !ok {
					return fail("expected capabilities.%s to be true or false, got %v", name, capabilities[name])
				}
			}
			return pass()
		}),
		c("registration", "5.2-5.5", Must, "the agent registers in the background, at least 3 times 5 s apart after 2 s, serves whatever comes of it, and skips without REGISTRY_URL", func(context.Context, *subject) finding {
			return skip("only the gateway that an agent was started with sees it; the agent's own tests have to")
		}),
	}
}

func (s *subject) health(ctx context.Context) (map[string]any, finding) {
	return object(s.do(ctx, http.MethodGet, pathHealth, nil, nil))
}

func (s *subject) agentManifest(ctx context.Context) (map[string]any, finding) {
	return object(s.do(ctx, http.MethodGet, pathManifest, nil, nil))
}

// texts expects members that are texts with something in them.
func texts(v map[string]any, names ...string) finding {
	for _, name := range names {
		if text, ok := v[name].(string); !ok || text == "" {
			return fail("expected a text in %s, got %v", name, v[name])
		}
	}
	return pass()
}

func skills(v map[string]any) finding {
	list, ok := v["skills"].([]any)
	if !ok {
		return fail("expected an array, got %T", v["skills"])
	}
	for i, item := range list {
		skill, ok := item.(map[string]any)
		if !ok {
			return fail("skill %d: expected an object, got %T", i, item)
		}
		if f := texts(skill, "id", "name", "description"); f.outcome != Passed {
			return fail("skill %d: %s", i, f.reason)
		}
		for _, name := range []string{"tags", "examples"} {
			if _, ok := skill[name].([]any); !ok {
				return fail("skill %d: expected an array in %s, got %T", i, name, skill[name])
			}
		}
	}
	return pass()
}
