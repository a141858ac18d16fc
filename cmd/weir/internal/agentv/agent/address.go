package agent

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"weir/host/fault"
)

// Protocols, by the names that AgentV gives them.
const (
	HTTP   = "http"
	SSE    = "sse"
	Local  = "local"
	Socket = "socket"
)

// An Address is where an agent is.
type Address struct {
	Protocol string
	URL      string   // of http and sse
	Network  string   // of socket: tcp or unix
	Target   string   // of socket: host:port or a path
	Command  []string // of local
}

// ParseAddress reads the forms that AgentV's document and its harness use:
// http:// and https:// URLs; tcp:HOST:PORT, unix:/PATH, with // behind the colon
// as well; a command, split like a shell's words. socket:// and local:// before
// these are aliases. Protocol may be empty, or say how the text is meant.
func ParseAddress(text, protocol string) (Address, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Address{}, fault.New(fault.Invalid, "agent: expected a URL, tcp:HOST:PORT, unix:PATH or a command")
	}
	switch protocol {
	case "", HTTP, SSE, Local, Socket:
	default:
		return Address{}, fault.New(fault.Invalid, "agent: expected the protocol http, sse, local or socket, got %q", protocol)
	}
	if command, ok := strings.CutPrefix(text, "local://"); ok || protocol == Local {
		return local(command)
	}
	if rest, ok := strings.CutPrefix(text, "socket://"); ok || protocol == Socket {
		return socket(rest)
	}
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		return remote(text, protocol)
	}
	if protocol != "" {
		return Address{}, fault.New(fault.Invalid, "agent: expected a URL for the protocol %s, got %q", protocol, text)
	}
	if strings.HasPrefix(text, "tcp:") || strings.HasPrefix(text, "unix:") {
		return socket(text)
	}
	if _, port, err := net.SplitHostPort(text); err == nil && !strings.ContainsAny(text, " /") {
		if _, err := strconv.Atoi(port); err == nil {
			return Address{}, fault.New(fault.Invalid, "agent: expected a URL, tcp:HOST:PORT, unix:PATH or a command, got %q: did you mean tcp:%s?", text, text)
		}
	}
	return local(text)
}

func remote(text, protocol string) (Address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return Address{}, fault.New(fault.Invalid, "agent: expected a URL with a host")
	}
	if protocol == "" {
		protocol = HTTP
	}
	return Address{Protocol: protocol, URL: text}, nil
}

// socket reads what stands behind socket://, which may name the network again.
func socket(text string) (Address, error) {
	for _, network := range []string{"tcp", "unix"} {
		if rest, ok := strings.CutPrefix(text, network+":"); ok {
			text = strings.TrimPrefix(rest, "//")
			return target(network, text)
		}
	}
	if strings.HasPrefix(text, "/") {
		return target("unix", text)
	}
	return target("tcp", text)
}

func target(network, text string) (Address, error) {
	if network == "tcp" {
		if _, port, err := net.SplitHostPort(text); err != nil || port == "" {
			return Address{}, fault.New(fault.Invalid, "agent: expected tcp:HOST:PORT, got %q", text)
		}
	}
	if text == "" {
		return Address{}, fault.New(fault.Invalid, "agent: expected unix:PATH, got no path")
	}
	return Address{Protocol: Socket, Network: network, Target: text}, nil
}

func local(text string) (Address, error) {
	words, err := split(text)
	if err != nil {
		return Address{}, err
	}
	if len(words) == 0 {
		return Address{}, fault.New(fault.Invalid, "agent: expected a command, got none")
	}
	return Address{Protocol: Local, Command: words}, nil
}

// split cuts a command into words like a shell that expands nothing: blanks
// between words, quotes of both kinds, a backslash before a character.
func split(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	inside, escaped := false, false
	for _, r := range text {
		switch {
		case escaped:
			if quote == '"' && r != '"' && r != '\\' {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			inside, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			inside, quote = true, r
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if inside {
				words = append(words, word.String())
			}
			word.Reset()
			inside = false
		default:
			inside = true
			word.WriteRune(r)
		}
	}
	if quote != 0 || escaped {
		return nil, fault.New(fault.Invalid, "agent: expected a command whose quotes are closed")
	}
	if inside {
		words = append(words, word.String())
	}
	return words, nil
}

// String is the address for people and ledgers, without what may carry
// credentials: a URL's user and query, and a command's options.
func (a Address) String() string {
	switch a.Protocol {
	case Local:
		for i, word := range a.Command {
			if strings.HasPrefix(word, "-") {
				return strings.Join(append(slices.Clone(a.Command[:i]), "…"), " ")
			}
		}
		return strings.Join(a.Command, " ")
	case Socket:
		return a.Network + ":" + a.Target
	}
	u, err := url.Parse(a.URL)
	if err != nil {
		return a.Protocol
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
