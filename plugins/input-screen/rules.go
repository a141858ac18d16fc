package main

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/pdk/plain"
)

// findings are what the deterministic layers found, as places in the lists of
// the configuration. They travel as the state of ask_model, so that the
// patterns run once a turn.
type findings struct {
	block   []int // critical patterns in the latest turn
	history []int // critical patterns in earlier assistant turns
	allow   []int // allow templates that the latest turn is

	// Critical patterns that only the text as it reads has, without what is
	// invisible in it and with full-width forms narrowed.
	plain        []int
	plainHistory []int
}

func (f *findings) blocked() bool {
	return len(f.block)+len(f.history)+len(f.plain)+len(f.plainHistory) > 0
}
func (f *findings) allowed() bool { return len(f.allow) > 0 }

// look runs the deterministic layers that are switched on.
func (s *screen) look(q *abi.CheckInputRequest) findings {
	var f findings
	if s.deterministicFallback {
		f.block, f.plain = s.critical.matching(q.Text)
		f.history, f.plainHistory = s.critical.matching(assistantText(q.History))
	}
	if s.readOnlyAllowOverride {
		f.allow = s.allow.fitting(q.Text)
	}
	return f
}

// matching returns the rules that text has a match of, and those that only its
// plain form has one of.
func (r *rules) matching(text string) (exact, hidden []int) {
	if r.set == nil {
		return nil, nil
	}
	exact = r.set.Occurring(text)
	p, differs := plain.Of(text)
	if !differs {
		return exact, nil
	}
	for _, i := range r.set.Occurring(p.Plain) {
		if !slices.Contains(exact, i) {
			hidden = append(hidden, i)
		}
	}
	return exact, hidden
}

// fitting returns the rules that a turn is a match of, as a whole and with its
// white space normalised. Most turns do not even begin like one.
func (r *rules) fitting(turn string) []int {
	if r.set == nil {
		return nil
	}
	if head := turn[:runeStart(turn, 64)]; !r.set.Beginning(normalise(head)) {
		return nil
	}
	return r.set.Fitting(normalise(turn))
}

// runeStart returns n, or the start of the character that n is inside of.
func runeStart(s string, n int) int {
	n = min(n, len(s))
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// warm prepares the sets for ordinary turns.
func (s *screen) warm() {
	for _, r := range []rules{s.critical, s.allow} {
		if r.set != nil {
			r.set.WarmWhole()
		}
	}
}

// assistantText is what is screened of the history (6.3): a client can put
// words into the assistant's mouth. Earlier user turns were screened when they
// were the latest; looking again would let one refusal poison a conversation.
func assistantText(history []abi.Turn) string {
	var parts []string
	for _, t := range history {
		if t.Role == abi.RoleAssistant && t.Content != "" {
			parts = append(parts, t.Content)
		}
	}
	return strings.Join(parts, "\n")
}

const maxTemplateChars = 500

// normalise is what templates are held against (6.4): words joined by single
// spaces, or nothing when that is too long for any template.
func normalise(text string) string {
	b := make([]byte, 0, min(len(text), maxTemplateChars))
	n, gap := 0, false
	for _, r := range text {
		if r == ' ' || r < '0' && unicode.IsSpace(r) || r >= utf8.RuneSelf && unicode.IsSpace(r) {
			gap = n > 0
			continue
		}
		if gap {
			b = append(b, ' ')
			n, gap = n+1, false
		}
		if n++; n > maxTemplateChars {
			return ""
		}
		if r < utf8.RuneSelf {
			b = append(b, byte(r))
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}

func (f *findings) appendJSON(b []byte) []byte {
	b = appendPlaces(append(b, `{"block":`...), f.block)
	b = appendPlaces(append(b, `,"history":`...), f.history)
	b = appendPlaces(append(b, `,"allow":`...), f.allow)
	if len(f.plain)+len(f.plainHistory) > 0 {
		b = appendPlaces(append(b, `,"plain":`...), f.plain)
		b = appendPlaces(append(b, `,"plain_history":`...), f.plainHistory)
	}
	return append(b, '}')
}

func appendPlaces(b []byte, places []int) []byte {
	b = append(b, '[')
	for i, p := range places {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendInt(b, int64(p))
	}
	return append(b, ']')
}

func (s *screen) readFindings(state abi.Raw) (f findings, err error) {
	d := strictjson.NewDecoder(state)
	err = d.Object(func(name string) (err error) {
		switch name {
		case "block":
			f.block, err = readPlaces(d, len(s.critical.names))
		case "history":
			f.history, err = readPlaces(d, len(s.critical.names))
		case "allow":
			f.allow, err = readPlaces(d, len(s.allow.names))
		case "plain":
			f.plain, err = readPlaces(d, len(s.critical.names))
		case "plain_history":
			f.plainHistory, err = readPlaces(d, len(s.critical.names))
		default:
			err = strictjson.Unknown(name)
		}
		return at(name, err)
	})
	if err == nil {
		err = d.End()
	}
	return f, at("state", err)
}

func readPlaces(d *strictjson.Decoder, n int) (places []int, err error) {
	err = d.Array(func() error {
		p, err := d.Int()
		if err == nil && (p < 0 || p >= int64(n)) {
			err = errors.New("no such rule")
		}
		places = append(places, int(p))
		return err
	})
	return places, err
}
