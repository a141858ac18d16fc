package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/abi/strictjson"
	"weir/host"
	"weir/host/guard"
	"weir/host/guard/trial"
)

// Colours of a terminal.
const (
	colourHeld   = "\x1b[33m"
	colourEdit   = "\x1b[36m"
	colourCut    = "\x1b[31m"
	colourNormal = "\x1b[0m"
)

// painter colours text where a person looks at a terminal.
type painter bool

func (p painter) paint(colour, text string) string {
	if !p || text == "" {
		return text
	}
	return colour + text + colourNormal
}

// painter returns whether stdout is a terminal whose user wants colours.
func (w *weir) painter() painter {
	f, ok := w.stdout.(*os.File)
	if !ok {
		return false
	}
	if _, no := w.env("NO_COLOR"); no {
		return false
	}
	info, err := f.Stat()
	return painter(err == nil && info.Mode()&os.ModeCharDevice != 0)
}

func (w *weir) line(b []byte) { _, _ = w.stdout.Write(append(b, '\n')) }

// stepPrinter returns what shows a step; n is 0 for the end of the text.
func (w *weir) stepPrinter(json bool) func(n int, piece string, step guard.Step) {
	if json {
		return func(n int, piece string, step guard.Step) { w.line(stepLine(n, piece, step)) }
	}
	p := w.painter()
	return func(n int, piece string, step guard.Step) { printStep(w.stdout, p, n, piece, step) }
}

// 3 "mail bob"        released "mail "   held "bob" by output-pii
//
//	output-pii: "bob@example.com" → "<EMAIL_ADDRESS>" (EMAIL_ADDRESS)
func printStep(out io.Writer, p painter, n int, piece string, step guard.Step) {
	number, arrived := "end", ""
	if n > 0 {
		number, arrived = strconv.Itoa(n), strconv.Quote(piece)
	}
	fmt.Fprintf(out, "%5s %-24s", number, arrived)
	if step.Released != "" {
		fmt.Fprintf(out, "  released %s", strconv.Quote(step.Released))
	}
	if step.Held != "" {
		fmt.Fprintf(out, "  held %s%s", p.paint(colourHeld, strconv.Quote(step.Held)), holders(step))
	}
	if step.Ended && n > 0 || step.Ended && step.Released != "" {
		fmt.Fprintf(out, "  %s", p.paint(colourCut, "cut"+cutters(step)))
	}
	fmt.Fprintln(out)
	for _, e := range step.Edits {
		fmt.Fprintf(out, "      %s: %s → %s (%s)\n", e.Guard, strconv.Quote(e.Text), p.paint(colourEdit, strconv.Quote(e.Replace)), e.Label)
	}
	for _, g := range step.Guards {
		if g.Err != nil {
			fmt.Fprintf(out, "      %s\n", p.paint(colourCut, g.Name+" failed: "+g.Err.Error()))
		}
	}
}

func holders(step guard.Step) string {
	return by(step, func(g guard.GuardStep) bool { return g.Held > 0 })
}

func cutters(step guard.Step) string {
	return by(step, func(g guard.GuardStep) bool { return g.Cuts })
}

func by(step guard.Step, which func(guard.GuardStep) bool) string {
	var names []string
	for _, g := range step.Guards {
		if which(g) {
			names = append(names, g.Name)
		}
	}
	if names == nil {
		return ""
	}
	return " by " + strings.Join(names, ", ")
}

func (s *summary) print(out io.Writer) {
	fmt.Fprintf(out, "\nreleased  %s\nheld      %.1f characters a step, %d at most\n", strconv.Quote(s.released), s.mean(), s.most)
	for _, name := range slices.Sorted(maps.Keys(s.calls)) {
		fmt.Fprintf(out, "calls     %s %d\n", name, s.calls[name])
	}
	fmt.Fprintf(out, "decision  %s\n", s.decision)
}

func stepLine(n int, piece string, step guard.Step) []byte {
	b := []byte("{")
	if n > 0 {
		b = strictjson.AppendInt(append(b, `"step":`...), int64(n))
		b = strictjson.AppendString(append(b, `,"piece":`...), strings.ToValidUTF8(piece, "\ufffd"))
	} else {
		b = append(b, `"end":true`...)
	}
	b = strictjson.AppendString(append(b, `,"released":`...), step.Released)
	b = strictjson.AppendString(append(b, `,"held":`...), step.Held)
	b = append(b, `,"edits":[`...)
	for i, e := range step.Edits {
		b = comma(b, i)
		b = strictjson.AppendString(append(b, `{"guard":`...), e.Guard)
		b = strictjson.AppendString(append(b, `,"label":`...), e.Label)
		b = strictjson.AppendString(append(b, `,"text":`...), e.Text)
		b = append(strictjson.AppendString(append(b, `,"replace":`...), e.Replace), '}')
	}
	b = append(b, `],"guards":[`...)
	for i, g := range step.Guards {
		b = comma(b, i)
		b = strictjson.AppendString(append(b, `{"name":`...), g.Name)
		b = strictjson.AppendInt(append(b, `,"held_bytes":`...), int64(g.Held))
		b = strictjson.AppendInt(append(b, `,"calls":`...), int64(g.Calls))
		if g.Err != nil {
			b = strictjson.AppendString(append(b, `,"error":`...), g.Err.Error())
		}
		b = append(b, '}')
	}
	return append(strictjson.AppendBool(append(b, `],"cut":`...), step.Ended), '}')
}

func (s *summary) line() []byte {
	b := strictjson.AppendString([]byte(`{"released":`), s.released)
	b = strictjson.AppendFloat(append(b, `,"held_mean":`...), s.mean())
	b = strictjson.AppendInt(append(b, `,"held_most":`...), int64(s.most))
	b = append(b, `,"calls":{`...)
	for i, name := range slices.Sorted(maps.Keys(s.calls)) {
		b = strictjson.AppendString(comma(b, i), name)
		b = strictjson.AppendInt(append(b, ':'), int64(s.calls[name]))
	}
	b = append(append(b, `},"decision":`...), s.decision...)
	return append(b, '}')
}

func proofLine(p *trial.Proof, set *host.GuardSet) []byte {
	b := strictjson.AppendBool([]byte(`{"holds":`), p.Broken == nil)
	b = strictjson.AppendInt(append(b, `,"ways":`...), int64(p.Runs))
	b = appendStrings(append(b, `,"guards":`...), set.Names)
	if c := p.Broken; c != nil {
		pieces := make([]string, len(c.Pieces))
		for i, piece := range c.Pieces {
			pieces[i] = piece
			if !utf8.ValidString(piece) { // JSON cannot hold half a character
				pieces[i] = strconv.QuoteToASCII(piece)
			}
		}
		b = appendStrings(append(b, `,"pieces":`...), pieces)
		b = strictjson.AppendString(append(b, `,"released":`...), c.Released)
		b = strictjson.AppendString(append(b, `,"whole":`...), c.Whole)
	}
	return append(b, '}')
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		b = strictjson.AppendString(comma(b, i), s)
	}
	return append(b, ']')
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}
