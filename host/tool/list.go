package tool

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"weir/abi/strictjson"
	"weir/host/fault"
)

// Bounds of a listing: more is a server that does not end.
const (
	maxPages = 100
	maxOffer = 10_000
)

// offer is one listed tool as the server describes it.
type offer struct {
	name, description string
	schema            []byte
	readOnly          *bool // nil: not said
	destructive       *bool
}

// list reads all pages of tools/list. Only the wanted tools are looked into, so
// what else a server offers cannot hurt.
func (c *Client) list(ctx context.Context, s *session, wanted []string) (map[string]offer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.CallTimeout)
	defer cancel()
	offers, cursor, seen := map[string]offer{}, "", 0
	for range maxPages {
		page, err := c.page(ctx, s, cursor)
		if err != nil {
			return nil, err
		}
		if seen += len(page.tools); seen > maxOffer {
			return nil, fault.New(fault.Limit, "tool: list: the server offers more than %d tools", maxOffer)
		}
		for _, raw := range page.tools {
			if err := consider(offers, raw, wanted); err != nil {
				return nil, err
			}
		}
		if page.next == "" {
			return offers, nil
		}
		if page.next == cursor {
			return nil, fault.New(fault.Invalid, "tool: list: the server repeats its cursor")
		}
		cursor = page.next
	}
	return nil, fault.New(fault.Limit, "tool: list: the server has more than %d pages", maxPages)
}

type page struct {
	tools [][]byte
	next  string
}

func (c *Client) page(ctx context.Context, s *session, cursor string) (page, error) {
	ctx, x := tapped(ctx)
	defer s.tap.drop(x)
	_, err := s.cs.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
	raw, _, _, _ := x.snapshot()
	if raw == nil {
		return page{}, fault.New(fault.Unavailable, "tool: list: %s", c.explain(err, x))
	}
	var p page
	d := strictjson.NewDecoder(raw)
	err = d.Object(func(name string) (err error) {
		switch {
		case name == "tools":
			return d.Array(func() error {
				tool, err := d.Raw()
				p.tools = append(p.tools, tool)
				return err
			})
		case name == "nextCursor" && !d.Null():
			p.next, err = d.String()
		case name != "nextCursor":
			err = d.Skip()
		}
		return err
	})
	if err != nil {
		return page{}, fault.New(fault.Invalid, "tool: list: %w", err)
	}
	return p, nil
}

// consider adds a listed tool to offers if it is wanted.
func consider(offers map[string]offer, raw []byte, wanted []string) error {
	name, err := nameOf(raw)
	if err != nil {
		return fault.New(fault.Invalid, "tool: list: %w", err)
	}
	if !slices.Contains(wanted, name) {
		return nil
	}
	if _, twice := offers[name]; twice {
		return fault.New(fault.Invalid, "tool %s: the server offers it twice", quote(name))
	}
	o, err := decodeOffer(raw)
	if err != nil {
		return fault.New(fault.Invalid, "tool %s: %w", quote(name), err)
	}
	offers[name] = o
	return nil
}

func nameOf(raw []byte) (name string, err error) {
	d := strictjson.NewDecoder(raw)
	err = d.Object(func(member string) (err error) {
		if member == "name" {
			name, err = d.String()
			return err
		}
		return d.Skip()
	})
	return name, err
}

func decodeOffer(raw []byte) (o offer, err error) {
	d := strictjson.NewDecoder(raw)
	err = d.Object(func(member string) (err error) {
		switch member {
		case "name":
			o.name, err = d.String()
		case "description":
			if !d.Null() {
				o.description, err = d.String()
			}
		case "inputSchema":
			var schema []byte
			schema, err = d.Raw()
			o.schema = slices.Clone(schema)
		case "annotations":
			if !d.Null() {
				err = o.annotations(d)
			}
		default:
			err = d.Skip()
		}
		return err
	})
	return o, err
}

func (o *offer) annotations(d *strictjson.Decoder) error {
	return d.Object(func(name string) error {
		switch {
		case name != "readOnlyHint" && name != "destructiveHint":
			return d.Skip()
		case d.Null():
			return nil
		}
		hint, err := d.Bool()
		if name == "readOnlyHint" {
			o.readOnly = &hint
		} else {
			o.destructive = &hint
		}
		return err
	})
}
