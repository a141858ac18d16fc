package tool

import (
	"net/url"
	"slices"
	"time"

	"weir/host/fault"
	"weir/host/telemetry"
)

// Options configures a [Client]. URL, Key and Include are required; every other
// zero value means the default.
type Options struct {
	// URL is the MCP endpoint, http or https. It may not carry credentials.
	URL string
	// Key is sent as a bearer token with every request, to this URL only.
	Key string
	// FunctionGroup is the first part of step names. Empty: no prefix.
	FunctionGroup string
	// Include lists the tools that models may call. A tool that the server
	// offers and that is not listed does not exist for anybody.
	Include []string
	// Overrides replace the server's description, by tool name.
	Overrides map[string]Override

	// CallTimeout bounds one call, a repetition included. Default 30 s. Too
	// short and slow tools fail; too long and a run waits for a dead server.
	CallTimeout time.Duration
	// ConnectTimeout bounds one attempt to open a session. Default 10 s.
	ConnectTimeout time.Duration
	// Attempts is how often Connect tries while the server does not answer.
	// Default 15; 1 fails at once. Too few and a slow neighbour keeps the agent
	// from starting; too many and a wrong address shows late.
	Attempts int
	// RetryDelay lies between two attempts, also of Ready. Default 2 s.
	RetryDelay time.Duration
	// ProbeAfter is the silence after which Ready has the server looked at.
	// Default 15 s.
	ProbeAfter time.Duration
	// MaxResponse bounds one HTTP response of the server in bytes. Default
	// 16 MiB. A larger one fails its call and ends the session.
	MaxResponse int64
	// MaxResult bounds the text of one result in bytes; longer ones are cut and
	// the cut is said. Default 256 KiB.
	MaxResult int

	// Changed is told, from a goroutine of the client, when a renewed session
	// offers tools that are not what was admitted; once for each change. It must
	// not block. Nil tells nobody.
	Changed func([]Change)

	// Tracer adds the trace to requests and times them; nil does neither.
	Tracer *telemetry.Tracer

	// Version is what the client calls its own version. Default "0".
	Version string
}

// Override replaces what the server says about a tool.
type Override struct {
	Description string
}

func (o Options) withDefaults() Options {
	o.CallTimeout = orElse(o.CallTimeout, 30*time.Second)
	o.ConnectTimeout = orElse(o.ConnectTimeout, 10*time.Second)
	o.Attempts = orElse(o.Attempts, 15)
	o.RetryDelay = orElse(o.RetryDelay, 2*time.Second)
	o.ProbeAfter = orElse(o.ProbeAfter, 15*time.Second)
	o.MaxResponse = orElse(o.MaxResponse, 16<<20)
	o.MaxResult = orElse(o.MaxResult, 256<<10)
	o.Version = orElse(o.Version, "0")
	return o
}

func orElse[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// validate never quotes the URL or the key.
func (o Options) validate() error {
	u, err := url.Parse(o.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fault.New(fault.Invalid, "tool: url: expected an absolute http or https URL")
	}
	if u.User != nil {
		return fault.New(fault.Invalid, "tool: url: expected no user name or password in it")
	}
	if o.Key == "" {
		return fault.New(fault.Invalid, "tool: key: expected a non-empty key for the MCP server")
	}
	if err := validateSelection(o.Include, o.Overrides); err != nil {
		return err
	}
	if o.Attempts < 0 || o.CallTimeout < 0 || o.ConnectTimeout < 0 || o.RetryDelay < 0 || o.MaxResponse < 0 || o.MaxResult < 0 {
		return fault.New(fault.Invalid, "tool: attempts, time-outs and sizes may not be negative")
	}
	return nil
}

func validateSelection(include []string, overrides map[string]Override) error {
	if len(include) == 0 {
		return fault.New(fault.Invalid, "tool: include: expected at least one tool name")
	}
	for i, name := range include {
		if name == "" || slices.Contains(include[:i], name) {
			return fault.New(fault.Invalid, "tool: include: expected distinct non-empty names, got %q", name)
		}
	}
	for name, override := range overrides {
		if !slices.Contains(include, name) {
			return fault.New(fault.Invalid, "tool: overrides: tool %q is not included", name)
		}
		if override.Description == "" {
			return fault.New(fault.Invalid, "tool: overrides: tool %q: description is empty", name)
		}
	}
	return nil
}

// secrets are what no text of ours may hold: the key and the address.
func (c *Client) secrets() []string {
	list := []string{c.opts.Key, c.opts.URL}
	if u, err := url.Parse(c.opts.URL); err == nil && u.Port() != "" {
		list = append(list, u.Host)
	}
	return list
}
