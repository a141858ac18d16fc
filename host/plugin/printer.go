package plugin

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/abi"
)

const (
	maxLine  = 1 << 10  // bytes of one line that are written
	maxRate  = 16 << 10 // bytes a second that a plugin may write to the log
	maxCall  = 16 << 10 // bytes of one call that are looked at
	maxQuote = 512      // bytes of a call's text that a failure may quote
)

// printed is one plugin's log, shared by its instances.
type printed struct {
	logger *slog.Logger // nil: lines are counted and dropped

	total   atomic.Uint64 // bytes that the plugin printed
	dropped atomic.Uint64 // of these, bytes that were not written to the log

	mu   sync.Mutex
	left int // of maxRate in this second
	at   time.Time
}

// take asks for room for n bytes in this second.
func (p *printed) take(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.at) >= time.Second {
		p.at, p.left = now, maxRate
	}
	if n > p.left {
		return false
	}
	p.left -= n
	return true
}

// printer takes what one instance prints during one call. An unfinished line
// ends with the call, so lines of two calls never run together.
type printer struct {
	log  *printed
	head []byte // the first maxQuote bytes of the call
	part []byte // an unfinished line, at most maxLine bytes
	cut  bool   // the unfinished line was longer
	seen int    // bytes of the call that were looked at
	lost int    // bytes of the call that were not
}

func (p *printer) begin() {
	p.head, p.part, p.cut, p.seen, p.lost = p.head[:0], p.part[:0], false, 0, 0
}

// end writes what is left of the call's text and says so when it was cut.
func (p *printer) end() {
	p.flush(slog.LevelInfo)
	if p.lost == 0 {
		return
	}
	p.log.dropped.Add(uint64(p.lost))
	if p.log.logger != nil && p.log.take(maxLine/16) {
		p.log.logger.Warn("plugin printed more than is written for one call", "bytes_dropped", p.lost)
	}
	p.lost = 0
}

// write takes bytes of the standard output or error.
func (p *printer) write(text []byte) {
	for text = p.admit(text); len(text) > 0; {
		line, rest, whole := bytes.Cut(text, []byte{'\n'})
		p.hold(line)
		if whole {
			p.flush(slog.LevelInfo)
		}
		text = rest
	}
}

// admit counts text and returns the part of it that may still be looked at: a
// guest must not make the host read a gigabyte.
func (p *printer) admit(text []byte) []byte {
	p.log.total.Add(uint64(len(text)))
	p.head = append(p.head, text[:min(len(text), maxQuote-len(p.head))]...)
	n := 0
	if p.log.logger != nil {
		n = min(len(text), maxCall-p.seen)
	}
	p.seen += n
	p.lost += len(text) - n
	return text[:n]
}

// printUnits is the cost of printing that many bytes, of which only the first
// of a call are looked at.
func printUnits(n int) int64 { return byteUnits(min(n, maxCall)) }

func (p *printer) hold(text []byte) {
	if room := maxLine - len(p.part); len(text) > room {
		p.log.dropped.Add(uint64(len(text) - room))
		text, p.cut = text[:room], true
	}
	p.part = append(p.part, text...)
}

// line takes one message of weir.log.
func (p *printer) line(level int, text []byte) {
	p.flush(slog.LevelInfo)
	p.hold(p.admit(text))
	p.flush(slogLevel(level))
}

// flush writes the unfinished line, if there is one.
func (p *printer) flush(level slog.Level) {
	line, cut := p.part, p.cut
	p.part, p.cut = p.part[:0], false
	if len(line) == 0 || p.log.logger == nil {
		return
	}
	if !p.log.take(len(line)) {
		p.log.dropped.Add(uint64(len(line)))
		return
	}
	text := strings.ToValidUTF8(string(line), "\uFFFD")
	attrs := []slog.Attr{slog.String("text", text)}
	if cut {
		attrs = append(attrs, slog.Bool("cut", true))
	}
	p.log.logger.LogAttrs(context.Background(), level, "plugin", attrs...)
}

// said is what a failure may quote of the call's text.
func (p *printer) said() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(p.head), ""))
}

// slogLevel reads a level of weir.log, which are slog's.
func slogLevel(level int) slog.Level {
	return slog.Level(min(max(level, abi.LogDebug), abi.LogError))
}
