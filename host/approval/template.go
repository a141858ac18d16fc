package approval

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// slotNote is the slot whose line goes with it.
const slotNote = "{note}"

var anySlot = regexp.MustCompile(`\{[a-z_]*\}`)

func (p *Proposal) lines(lines []string) string { return p.linesWith(lines, "") }

func (p *Proposal) linesWith(lines []string, choice string) string {
	var out []string
	for _, line := range lines {
		if p.note == "" && strings.Contains(line, slotNote) {
			continue
		}
		out = append(out, p.fill(line, choice))
	}
	return strings.Join(out, "\n")
}

// fill replaces every slot in one pass, so that what a model wrote is not read
// as a template.
func (p *Proposal) fill(template, choice string) string {
	return strings.NewReplacer("{resource}", p.resource, "{current}", p.current, "{requested}", p.requested,
		"{summary}", p.summary, slotNote, p.note, "{choice}", choice).Replace(template)
}

// checkTemplate reports a slot that has no value here and one that is missing.
func checkTemplate(what, text string, known []string, needed ...string) error {
	for _, slot := range anySlot.FindAllString(text, -1) {
		if !slices.Contains(known, slot) {
			return fmt.Errorf("%s: %s has no value here, expected one of %s", what, slot, strings.Join(known, " "))
		}
	}
	for _, slot := range needed {
		if !strings.Contains(text, slot) {
			return fmt.Errorf("%s: expected %s in it: a person must see what is signed", what, slot)
		}
	}
	return nil
}
