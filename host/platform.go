package host

import (
	"weir/abi"
	"weir/host/contract/platform"
	"weir/host/registry"
	"weir/host/server"
)

// publicRoutes are what the platform may ask without a key.
func (h *Host) publicRoutes() []server.Route {
	p := platform.New(platform.Options{Title: h.cfg.Agent.Title, Version: h.cfg.Agent.Version,
		Ready: h.notReady, Manifest: func() platform.Manifest { return manifest(h.swaps.current.Load()) }})
	return []server.Route{
		{Method: "GET", Path: platform.PathHealth, Handle: p.Health},
		{Method: "GET", Path: platform.PathLive, Handle: p.Live},
		{Method: "GET", Path: platform.PathReady, Handle: p.Ready},
		{Method: "GET", Path: platform.PathManifest, Handle: p.Manifest},
	}
}

// notReady lists the reasons why no run should come here, in fixed words: they
// are public. A host without loaded plugins has no listener that could say so.
func (h *Host) notReady() []string {
	var reasons []string
	if h.draining.Load() {
		reasons = append(reasons, "draining")
	}
	if err := h.tools.Ready(); err != nil {
		reasons = append(reasons, err.Error())
	}
	// A backend outside the process says whether it can be reached.
	if s, ok := h.store.(interface{ Ready() error }); ok && s.Ready() != nil {
		reasons = append(reasons, "store unreachable")
	}
	if g := h.swaps.current.Load().generation; closed(g.Freed()) {
		reasons = append(reasons, "plugins closed")
	}
	return reasons
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// manifest is what a policy says of the agent: the operator's skills first,
// then those of the workflow and of the guardrails in their order.
func manifest(p *policy) platform.Manifest {
	a := p.cfg.Agent
	m := platform.Manifest{Name: a.Title, Version: a.Version, Description: a.Description, URL: "/",
		Capabilities: platform.Capabilities{Streaming: true, Conversational: a.MaxHistory > 1, DirectAPI: true}}
	for _, s := range a.Skills {
		m.Skills = append(m.Skills, platform.Skill(s))
	}
	add := func(skills []abi.Skill) {
		for _, s := range skills {
			m.Skills = append(m.Skills, platform.Skill(s))
		}
	}
	add(p.workflow.Description().Skills)
	for _, g := range p.cfg.Guards() {
		add(p.generation.Plugin(g.Name).Description().Skills)
	}
	return m
}

// startRegistry tells the agent gateway of this agent. The listener is open: the
// gateway reads the manifest at once.
func (h *Host) startRegistry() error {
	c := h.cfg.Registry
	r, err := registry.Start(registry.Options{URL: c.URL, Endpoint: c.SelfURL, Attempts: c.Attempts, Logger: h.log})
	if err != nil {
		return err
	}
	h.onStop(r.Stop)
	return nil
}
