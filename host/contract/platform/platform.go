// Package platform is what the platform that runs agents asks of each of them
// (sections 4 and 6 of its specification): is it alive, is it ready, and what
// can it do. All of it is public, needs no key and says nothing of anybody who
// uses the agent.
//
//	GET /health                   alive: {"status":"healthy","service":…,"version":…}
//	GET /health/live              alive: ok
//	GET /health/ready             ready, or 503 with one reason a line
//	GET /.well-known/agent.json   the manifest
//
// Alive means that the process answers. An agent that is not ready is alive:
// starting it again would not bring its neighbours back.
package platform

import "strings"

// Paths of the routes; HEAD is answered where GET is.
const (
	PathHealth   = "/health"
	PathLive     = "/health/live"
	PathReady    = "/health/ready"
	PathManifest = "/.well-known/agent.json"
)

// Handler answers the routes. It is safe for concurrent use.
type Handler struct{ opts Options }

// Options are what the routes say.
type Options struct {
	// Title is the agent's name for people, Version its semantic version.
	Title, Version string
	// Ready returns the reasons why the agent is not ready, one sentence each.
	// They are public. Nil means always ready.
	Ready func() []string
	// Manifest returns what the agent is at this moment; nil: its title and
	// version only.
	Manifest func() Manifest
}

// New returns a handler.
func New(opts Options) *Handler {
	if opts.Ready == nil {
		opts.Ready = func() []string { return nil }
	}
	if opts.Manifest == nil {
		opts.Manifest = func() Manifest { return Manifest{Name: opts.Title, Version: opts.Version} }
	}
	return &Handler{opts}
}

// ready returns the text of [PathReady] and whether the agent is.
func (h *Handler) ready() (string, bool) {
	reasons := h.opts.Ready()
	if len(reasons) == 0 {
		return "ready", true
	}
	lines := make([]string, len(reasons))
	for i, r := range reasons {
		lines[i] = strings.Join(strings.Fields(r), " ") // one line each, whatever it quotes
	}
	return strings.Join(lines, "\n"), false
}
