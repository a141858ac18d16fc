package tool

import (
	"context"
	"maps"
	"slices"
	"strings"

	"weir/host/fault"
)

// Set is a closed registry of tools: what one policy lets models call at the
// client's server. It never changes; another policy has another set. All
// methods may be called concurrently.
type Set struct {
	client *Client // nil: somebody else performs the calls, see [Declare]
	tools  []Tool  // sorted by name
	byName map[string]*entry
}

type entry struct {
	Tool
	schema *schema
	digest string
}

// Change is a tool that is not what was admitted.
type Change struct {
	Name     string
	Admitted string // the digest then
	Offered  string // the digest now; empty: the server does not offer it any more
}

// Tools returns the tools in the order in which models see them: by name. The
// slice and its schemas belong to the set.
func (s *Set) Tools() []Tool { return s.tools }

// Changed lists the tools that the server describes differently by now, or not
// at all. Calls of them are refused; a set that is selected anew has them as
// they are.
func (s *Set) Changed() []Change {
	if s.client == nil {
		return nil
	}
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	var out []Change
	for _, t := range s.tools {
		if e := s.byName[t.Name]; s.client.offered[t.Name] != e.digest {
			out = append(out, Change{Name: t.Name, Admitted: e.digest, Offered: s.client.offered[t.Name]})
		}
	}
	return out
}

// Override returns the set with other texts for models. It asks nobody.
func (s *Set) Override(overrides map[string]Override) (*Set, error) {
	names := slices.Collect(maps.Keys(s.byName))
	if err := validateSelection(names, overrides); err != nil {
		return nil, err
	}
	next := &Set{client: s.client, byName: map[string]*entry{}}
	for _, t := range s.tools {
		e := *s.byName[t.Name]
		next.add(&e, overrides)
	}
	return next, nil
}

// Select asks the server for a set of other tools and checks them as Connect
// does. A session that has ended is renewed first.
func (c *Client) Select(ctx context.Context, include []string, overrides map[string]Override) (*Set, error) {
	if err := validateSelection(include, overrides); err != nil {
		return nil, err
	}
	if !c.enter() {
		return nil, fault.New(fault.Unavailable, "tool: %w", errClosed)
	}
	defer c.work.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(errClosed) })()

	c.mu.Lock()
	s := c.current
	c.mu.Unlock()
	if s.dead.Load() {
		return c.selectAnew(ctx, s, include, overrides)
	}
	set, err := c.choose(ctx, s, include, overrides)
	// A session that nobody has used for long may have ended without a sign.
	if fault.Of(err) == fault.Unavailable && ctx.Err() == nil {
		return c.selectAnew(ctx, s, include, overrides)
	}
	return set, err
}

func (c *Client) selectAnew(ctx context.Context, failed *session, include []string, overrides map[string]Override) (*Set, error) {
	s, err := c.fresh(ctx, failed)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "tool: list: %w", err)
	}
	return c.choose(ctx, s, include, overrides)
}

// choose lists the tools of a session and admits the included ones.
func (c *Client) choose(ctx context.Context, s *session, include []string, overrides map[string]Override) (*Set, error) {
	offers, err := c.list(ctx, s, include)
	if err != nil {
		return nil, err
	}
	set, err := c.admit(offers, include, overrides)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, e := range set.byName {
		c.offered[name], c.admitted[name] = e.digest, e.digest
	}
	return set, nil
}

// admit checks what was listed against the allow-list (5.3 of the contract).
func (c *Client) admit(offers map[string]offer, include []string, overrides map[string]Override) (*Set, error) {
	set := &Set{client: c, byName: map[string]*entry{}}
	for _, name := range slices.Sorted(slices.Values(include)) {
		o, ok := offers[name]
		switch {
		case !ok:
			return nil, fault.New(fault.Invalid, "tool %s: included, but the server does not offer it", quote(name))
		case o.readOnly != nil && !*o.readOnly:
			return nil, fault.New(fault.Invalid, "tool %s: the server marks it readOnlyHint=false; only read-only tools can be included", quote(name))
		case o.destructive != nil && *o.destructive:
			return nil, fault.New(fault.Invalid, "tool %s: the server marks it destructiveHint=true; only read-only tools can be included", quote(name))
		}
		compiled, err := compile(o.schema)
		if err != nil {
			return nil, fault.New(fault.Invalid, "tool %s: schema: %w", quote(name), err)
		}
		t := o.tool(name)
		t.StepName = c.stepName(name)
		set.add(&entry{Tool: t, schema: compiled, digest: Digest(t)}, overrides)
	}
	return set, nil
}

func (s *Set) add(e *entry, overrides map[string]Override) {
	e.Description = e.Published
	if override, ok := overrides[e.Name]; ok {
		e.Description = override.Description
	}
	s.byName[e.Name] = e
	s.tools = append(s.tools, e.Tool)
}

// tool is what the server says of the tool, and nothing of ours.
func (o offer) tool(name string) Tool {
	return Tool{Name: name, Published: o.description, Schema: o.schema, ReadOnly: o.readOnly != nil && *o.readOnly}
}

func (c *Client) stepName(name string) string {
	if c.opts.FunctionGroup == "" {
		return name
	}
	return strings.Join([]string{c.opts.FunctionGroup, name}, "__")
}

// compare holds the tools of a new session against those that were admitted
// (M6: a tool that changes after it was looked at).
func (c *Client) compare(ctx context.Context, s *session) error {
	c.mu.Lock()
	names := slices.Collect(maps.Keys(c.offered))
	c.mu.Unlock()
	offers, err := c.list(ctx, s, names)
	if err != nil {
		return err
	}
	if changed := c.update(offers, names); len(changed) > 0 && c.opts.Changed != nil {
		c.opts.Changed(changed)
	}
	return nil
}

// update takes in what is offered now, and returns what has become different
// from what was admitted.
func (c *Client) update(offers map[string]offer, names []string) (changed []Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(slices.Values(names)) {
		before, now := c.offered[name], offers[name].digest(name)
		c.offered[name] = now
		if now != before && now != c.admitted[name] {
			changed = append(changed, Change{Name: name, Admitted: c.admitted[name], Offered: now})
		}
	}
	return changed
}

// digest is empty for a tool that could not be admitted at all.
func (o offer) digest(name string) string {
	if o.name == "" || o.destructive != nil && *o.destructive {
		return ""
	}
	return Digest(o.tool(name))
}

// differs tells whether a tool is not what was admitted any more.
func (c *Client) differs(e *entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offered[e.Name] != e.digest
}
