package agent

import (
	"bytes"
	"testing"

	"weir/abi/strictjson"
)

// Whatever a stream holds, what is made of it is one JSON object within the bound,
// or an error.
func FuzzMerge(f *testing.F) {
	f.Add([]byte("data: {\"action\":\"a\",\"content\":\"x\"}\n\ndata: more\ndata:[DONE]\n"))
	f.Add([]byte("data: {\"content\":7}\r\ndata: {\"content\":null,\"b\":{}}\n"))
	f.Add([]byte("data: {\"content\":\"\"}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &httpSession{opts: Options{MaxReply: 1000}.withDefaults(SSE)}
		body, err := s.merge(bytes.NewReader(data))
		if err != nil {
			return
		}
		if strictjson.Valid(body) != nil || strictjson.NewDecoder(body).Kind() != strictjson.Object {
			t.Errorf("%q became %q", data, body)
		}
	})
}

// No text makes the reading of addresses panic, and what is accepted is an
// address that can be opened.
func FuzzParseAddress(f *testing.F) {
	for _, text := range []string{"http://x", "tcp:[::1]:9", "unix:///a", "socket://local://x", `a 'b \' "c\"`, "local:// --x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAddress(text, "")
		if err != nil {
			return
		}
		_ = a.String()
		s, err := Open(a, Options{})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			return
		}
		_ = s.Close()
	})
}
