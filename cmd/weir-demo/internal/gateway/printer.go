package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// printer shows a conversation to people, line by line, as it streams.
type printer struct {
	out    io.Writer
	colour bool
	open   bool // in the middle of the answer
}

const (
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	cyan  = "\x1b[36m"
	plain = "\x1b[0m"
)

// shown bounds what is printed of a tool's result, in characters.
const shown = 240

func (p *printer) paint(colour, text string) string {
	if !p.colour {
		return text
	}
	return colour + text + plain
}

func (p *printer) line(label, text string) {
	p.endAnswer()
	fmt.Fprintf(p.out, "  %-9s %s\n", label, text)
}

func (p *printer) title(text string) {
	fmt.Fprintf(p.out, "\n%s\n", p.paint(bold, "── "+text+" ──"))
}

func (p *printer) user(text string) { p.line("user", p.paint(cyan, printable(text))) }

// text shows a fragment where the last one ended.
func (p *printer) text(fragment string) {
	if !p.open {
		fmt.Fprintf(p.out, "  %-9s ", "answer")
		p.open = true
	}
	fmt.Fprint(p.out, indent(printable(fragment)))
}

func (p *printer) endAnswer() {
	if p.open {
		fmt.Fprintln(p.out)
		p.open = false
	}
}

func (p *printer) step(s step) {
	switch s.Type {
	case "TOOL_START":
		p.line("call", fmt.Sprintf("%s %s", s.tool(), printable(string(s.Payload.Data.Input))))
	case "TOOL_END":
		p.line("result", p.paint(dim, fmt.Sprintf("%s %s", s.tool(), short(string(s.Payload.Data.Output)))))
	case "FUNCTION_START":
		if !strings.HasPrefix(s.Name, "guardrail_") {
			p.line("proposal", fmt.Sprintf("%s %s", printable(s.Name), short(string(s.Payload.Data.Input))))
		}
	case "FUNCTION_END":
		var d decision
		if !strings.HasPrefix(s.Name, "guardrail_") {
			p.line("result", p.paint(dim, fmt.Sprintf("%s %s", printable(s.Name), short(string(s.Payload.Data.Output)))))
		} else if json.Unmarshal(s.Payload.Data.Output, &d) == nil {
			p.line("decision", p.paint(dim, s.Name+": ")+p.outcome(d))
		}
	}
}

// prompt shows a question as a person would see it, with what they do.
func (p *printer) prompt(q prompt, chosen, said string) {
	p.line("asks", indent(printable(q.Text)))
	for _, o := range q.Options {
		mark := "○"
		if o.ID == chosen {
			mark = "●"
		}
		p.line("", mark+" "+printable(o.Label)+"  "+p.paint(dim, printable(o.Description)))
	}
	p.line("person", p.paint(cyan, printable(said)))
}

// indent lets the lines after the first begin where that one does.
func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", 12)) }

func (p *printer) outcome(d decision) string {
	text := d.Outcome
	if d.Source != "" {
		text += " (" + d.Source + ")"
	}
	var masked []string
	for name, n := range d.Masked {
		masked = append(masked, fmt.Sprintf("%d %s", n, name))
	}
	if slices.Sort(masked); len(masked) > 0 {
		text += ", masked " + strings.Join(masked, ", ")
	}
	if d.Blocked {
		return p.paint(red, printable(text))
	}
	return p.paint(green, printable(text))
}

func (p *printer) success(text string) { p.line("", p.paint(green, "✓ "+text)) }

func (p *printer) failure(text string) { p.line("", p.paint(red, "✗ "+printable(text))) }

func short(text string) string {
	text = printable(text)
	if runes := []rune(text); len(runes) > shown {
		return string(runes[:shown]) + "…"
	}
	return text
}

// printable keeps terminal sequences out of the terminal: this is text from a
// model and a tool.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return '·'
		}
		return r
	}, text)
}

// quote makes one word of a POSIX shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
