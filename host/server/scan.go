package server

import (
	"bytes"
	"strconv"
	"strings"
)

// scanner follows the requests on one connection and finds what the HTTP
// library tolerates but two readers may understand differently: bare LF,
// folded lines, NUL, two framings, a Connection header that would make a proxy
// drop an identity header. It needs no chunk parser: after a chunked request
// it is blind, and a connection with a blind scanner ends with the response.
type scanner struct {
	limit int // bytes of a head; a longer one is the library's to refuse

	state scanState
	body  int64 // bytes of the body still to come, in scanBody
	bad   bool  // something was refused; it stays

	line []byte // the line in progress
	size int    // bytes of this head so far
	head head
}

type scanState uint8

const (
	scanHead scanState = iota
	scanBody
	scanBlind
)

// head is what one request head said so far.
type head struct {
	started bool // the request line was seen
	length  int64
	lengths int
	codings int
	hosts   int
}

// inBody reports whether the client has still to send a part of a body.
func (s *scanner) inBody() bool { return s.state == scanBody }

// feed looks at the next bytes from the client.
func (s *scanner) feed(p []byte) {
	for len(p) > 0 {
		switch s.state {
		case scanBlind:
			return
		case scanBody:
			n := min(int64(len(p)), s.body)
			p, s.body = p[n:], s.body-n
			if s.body == 0 {
				s.state = scanHead
			}
		default:
			p = s.feedHead(p)
		}
	}
}

// feedHead takes one line, or what there is of it, and returns the rest.
func (s *scanner) feedHead(p []byte) []byte {
	n := bytes.IndexByte(p, '\n') + 1
	whole := n > 0
	if !whole {
		n = len(p)
	}
	s.size += n
	if s.size > s.limit {
		s.state, s.line = scanBlind, nil
		return nil
	}
	s.line = append(s.line, p[:n]...)
	if whole {
		s.endLine(s.line)
		s.line = s.line[:0]
	}
	return p[n:]
}

func (s *scanner) endLine(line []byte) {
	text, crlf := bytes.CutSuffix(line, []byte("\r\n"))
	switch {
	case !crlf || bytes.ContainsAny(text, "\r\x00"):
		s.refuse()
	case !s.head.started:
		s.head.started = len(text) > 0 // empty lines before a request are nothing
	case len(text) == 0:
		s.endHead()
	case !s.head.field(text):
		s.refuse()
	}
}

func (s *scanner) refuse() { s.bad, s.state = true, scanBlind }

func (s *scanner) endHead() {
	h := s.head
	s.head, s.size = head{}, 0
	switch {
	case h.codings > 0 && h.lengths > 0:
		s.refuse()
	case h.codings > 0:
		s.state = scanBlind
	case h.length > 0:
		s.state, s.body = scanBody, h.length
	}
}

// field looks at one header line and reports whether it may stand.
func (h *head) field(line []byte) bool {
	colon := bytes.IndexByte(line, ':')
	if colon < 1 || !isToken(line[:colon]) { // also a folded line: it begins with a space
		return false
	}
	value := string(bytes.Trim(line[colon+1:], " \t"))
	switch strings.ToLower(string(line[:colon])) {
	case "content-length":
		return h.setLength(value)
	case "transfer-encoding":
		h.codings++
		return h.codings == 1 && strings.EqualFold(value, "chunked")
	case "host":
		h.hosts++
		return h.hosts == 1
	case "connection", "proxy-connection":
		return !namesIdentity(value)
	}
	return true
}

func (h *head) setLength(value string) bool {
	h.lengths++
	n, err := strconv.ParseUint(value, 10, 62)
	h.length = int64(n)
	return err == nil && h.lengths == 1
}

// namesIdentity reports whether a Connection header tells the next hop to drop
// a header that says who is asking.
func namesIdentity(value string) bool {
	for name := range strings.SplitSeq(strings.ToLower(value), ",") {
		name = strings.Trim(name, " \t")
		if name == "authorization" || name == "x-request-id" || strings.HasPrefix(name, "x-authenticated-") {
			return true
		}
	}
	return false
}

// isToken holds a header's name against RFC 9110, section 5.6.2.
func isToken(name []byte) bool {
	for _, c := range name {
		alnum := '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !alnum && !bytes.ContainsRune([]byte("!#$%&'*+-.^_`|~"), rune(c)) {
			return false
		}
	}
	return true
}
