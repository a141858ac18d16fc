package guard

import (
	"context"
	"slices"

	"weir/abi"
	"weir/abi/strictjson"
)

const withheld = `"[withheld]"`

// Display returns value, JSON for people's eyes, with every string value in it
// (names are kept) redacted by the output guards (6.10); order and the text of
// numbers stay. It fails closed: if value is not strict JSON or a guard fails,
// whatever its policy, the result is the string "[withheld]".
func (s *Session) Display(ctx context.Context, value abi.Raw) abi.Raw {
	var texts []string
	d := strictjson.NewDecoder(value)
	if collect(d, &texts) != nil || d.End() != nil {
		return abi.Raw(withheld)
	}
	if len(texts) > 0 && !s.redact(ctx, texts) {
		return abi.Raw(withheld)
	}
	out, err := rebuild(make([]byte, 0, len(value)), strictjson.NewDecoder(value), &texts)
	if err != nil {
		return abi.Raw(withheld)
	}
	return out
}

// redact shows every guard all texts in one call and puts the merged edits of
// all into them. It returns false if a guard failed.
func (s *Session) redact(ctx context.Context, texts []string) bool {
	if len(s.chain.output.watching) > 0 {
		s.watchDisplay(ctx, slices.Clone(texts))
	}
	mergers := make([]merger, len(texts))
	for i, g := range s.chain.output.enforcing {
		t := tally{guard: g}
		edits, err := s.display(ctx, &t, texts)
		if ctx.Err() != nil {
			return false
		}
		s.observe(StageDisplay, &t)
		if err != nil {
			return false
		}
		for _, e := range edits {
			mergers[e.Index].add(edit{e.Start, e.End, i, e.Replace, e.Label})
		}
	}
	for i := range mergers {
		mergers[i].applied = func(edit) {}
		texts[i] = mergers[i].take(texts[i], len(texts[i]), true)
	}
	return true
}

// display calls one guard and holds its reply against the protocol.
func (s *Session) display(ctx context.Context, t *tally, texts []string) ([]abi.Edit, error) {
	if t.guard.native != nil {
		clean, err := t.guard.native.clean(texts)
		if err != nil {
			t.fail(err)
			return nil, err
		}
		if clean {
			t.verdict = VerdictAllow
			return nil, nil
		}
	}
	req := abi.CheckOutputRequest{Call: s.opts.Stamp(), Use: abi.UseDisplay, Texts: texts, Final: true}
	began := s.chain.opts.Clock()
	reply, fuel, err := t.guard.Output.CheckOutput(ctx, &req)
	t.called(fuel, s.chain.opts.Clock().Sub(began))
	if err == nil {
		err = checkOutputReply(t.guard, reply, &req)
	}
	if err != nil {
		t.fail(err)
		return nil, err
	}
	t.verdict = VerdictAllow
	if len(reply.Edits) > 0 {
		t.verdict = VerdictModify
	}
	return reply.Edits, nil
}

func (s *Session) watchDisplay(ctx context.Context, texts []string) {
	for _, g := range s.chain.output.watching {
		s.watch(ctx, StageDisplay, g, func(ctx context.Context, t *tally) { _, _ = s.display(ctx, t, texts) })
	}
}

// collect appends every string value of the next JSON value, in order.
func collect(d *strictjson.Decoder, texts *[]string) error {
	switch d.Kind() {
	case strictjson.Object:
		return d.Object(func(string) error { return collect(d, texts) })
	case strictjson.Array:
		return d.Array(func() error { return collect(d, texts) })
	case strictjson.String:
		s, err := d.String()
		*texts = append(*texts, s)
		return err
	}
	return d.Skip()
}

// rebuild appends the next JSON value to b, with texts in place of its string
// values.
func rebuild(b []byte, d *strictjson.Decoder, texts *[]string) ([]byte, error) {
	var err error
	switch d.Kind() {
	case strictjson.Object:
		b = append(b, '{')
		first := len(b)
		err = d.Object(func(name string) (err error) {
			b = comma(b, first)
			b = append(strictjson.AppendString(b, name), ':')
			b, err = rebuild(b, d, texts)
			return err
		})
		b = append(b, '}')
	case strictjson.Array:
		b = append(b, '[')
		first := len(b)
		err = d.Array(func() (err error) {
			b = comma(b, first)
			b, err = rebuild(b, d, texts)
			return err
		})
		b = append(b, ']')
	case strictjson.String:
		err = d.Skip()
		b = strictjson.AppendString(b, (*texts)[0])
		*texts = (*texts)[1:]
	default:
		var raw []byte
		raw, err = d.Raw()
		b = append(b, raw...)
	}
	return b, err
}

func comma(b []byte, first int) []byte {
	if len(b) > first {
		return append(b, ',')
	}
	return b
}
