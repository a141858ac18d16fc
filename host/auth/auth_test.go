package auth

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"weir/host/fault"
)

const key = "a-service-key"

// head builds headers from "name: value" lines; the value is kept as it is.
func head(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

func authenticator(t testing.TB) *Authenticator {
	t.Helper()
	a, err := New("  " + key + "\n") // 1.2: trimmed at load
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Clause 1.2, items 1 to 4 and the header value rules, in their order.
func TestRefusals(t *testing.T) {
	const good, user = "Authorization: Bearer " + key, "x-authenticated-user-id: alice"
	tests := []struct {
		name  string
		lines []string
		code  string // "" is accepted
	}{
		{"control", []string{good, user}, ""},
		{"no key", []string{user}, CodeKey},
		{"empty key", []string{"Authorization: ", user}, CodeKey},
		{"wrong key", []string{"Authorization: Bearer other", user}, CodeKey},
		{"key alone", []string{"Authorization: " + key, user}, CodeKey},
		{"lower-case scheme", []string{"Authorization: bearer " + key, user}, CodeKey},
		{"two spaces", []string{"Authorization: Bearer  " + key, user}, CodeKey},
		{"key with more", []string{good + "x", user}, CodeKey},
		{"key twice", []string{good, good, user}, CodeKey},
		{"right and wrong key", []string{good, "Authorization: Bearer other", user}, CodeKey},
		{"key before identity", []string{"x-request-id: a b"}, CodeKey},

		{"no identity", []string{good}, CodeIdentity},
		{"blank identity", []string{good, "x-authenticated-user-id:  \t"}, CodeIdentity},
		{"identity twice", []string{good, user, "x-authenticated-user-id: bob"}, CodeIdentity},
		{"same identity twice", []string{good, user, user}, CodeIdentity},
		{"identity and a blank one", []string{good, user, "x-authenticated-user-id: "}, CodeIdentity},
		{"identity before request id", []string{good, "x-request-id: a b"}, CodeIdentity},
		{"identity with NUL", []string{good, "x-authenticated-user-id: al\x00ice"}, CodeIdentity},
		{"identity with a tab inside", []string{good, "x-authenticated-user-id: al\tice"}, CodeIdentity},
		{"identity with DEL", []string{good, "x-authenticated-user-id: al\x7fice"}, CodeIdentity},
		{"identity with a high byte", []string{good, "x-authenticated-user-id: Zo\u00eb"}, CodeIdentity},
		{"identity of 256", []string{good, "x-authenticated-user-id: " + strings.Repeat("x", 256)}, ""},
		{"identity of 257", []string{good, "x-authenticated-user-id: " + strings.Repeat("x", 257)}, CodeIdentity},
		{"identities in a list", []string{good, "x-authenticated-user-id: alice, bob"}, CodeIdentity},
		{"identities in a list without a space", []string{good, "x-authenticated-user-id: alice,bob"}, CodeIdentity},
		{"username with a comma", []string{good, user, "x-authenticated-username: Smith, Zo%C3%AB"}, ""},
		{"identity in tabs", []string{good, "x-authenticated-user-id: \talice \t"}, ""},

		{"username", []string{good, user, "x-authenticated-username: Zo%C3%AB Smith"}, ""},
		{"username twice", []string{good, user, "x-authenticated-username: a", "x-authenticated-username: b"}, CodeIdentity},
		{"username malformed", []string{good, user, "x-authenticated-username: \x01"}, CodeIdentity},
		{"username too long", []string{good, user, "x-authenticated-username: " + strings.Repeat("x", 257)}, CodeIdentity},
		{"username blank", []string{good, user, "x-authenticated-username: "}, ""},
		{"roles twice", []string{good, user, "x-authenticated-roles: a", "x-authenticated-roles: b"}, CodeIdentity},
		{"roles malformed", []string{good, user, "x-authenticated-roles: \u00e9"}, CodeIdentity},
		{"email is never read", []string{good, user, "x-authenticated-email: \x01", "x-authenticated-email: b"}, ""},

		{"request id", []string{good, user, "x-request-id: not-a-uuid"}, ""},
		{"request id twice", []string{good, user, "x-request-id: a", "x-request-id: b"}, CodeRequestID},
		{"request id blank", []string{good, user, "x-request-id:  "}, ""},
		{"request id with a space", []string{good, user, "x-request-id: a b"}, CodeRequestID},
		{"request id with a high byte", []string{good, user, "x-request-id: \u00e9"}, CodeRequestID},
		{"request id of 128", []string{good, user, "x-request-id: " + strings.Repeat("x", 128)}, ""},
		{"request id of 129", []string{good, user, "x-request-id: " + strings.Repeat("x", 129)}, CodeRequestID},
	}
	// Clause 1.3, byte for byte.
	wire := map[string]struct {
		kind fault.Kind
		text string
	}{
		CodeKey:       {fault.Unauthenticated, "invalid or missing internal API key"},
		CodeIdentity:  {fault.Unauthenticated, "missing or ambiguous authenticated identity"},
		CodeRequestID: {fault.Invalid, "invalid x-request-id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := head(tt.lines...)
			_, err := authenticator(t).Authenticate(h)
			if got := fault.CodeOf(err); got != tt.code {
				t.Fatalf("code = %q (%v), want %q", got, err, tt.code)
			}
			if tt.code != CodeKey && h.Get("Authorization") != "" {
				t.Error("the key was accepted and is still there")
			}
			if err == nil {
				return
			}
			if want := wire[tt.code]; fault.Of(err) != want.kind || err.Error() != want.text {
				t.Errorf("got %v %q, want %v %q", fault.Of(err), err, want.kind, want.text)
			}
		})
	}
}

func TestBlankKeyIsRefused(t *testing.T) {
	if _, err := New(" \n"); fault.Of(err) != fault.Invalid {
		t.Errorf("New = %v, want a refusal", err)
	}
}

// Clause 1.2: values are trimmed and never percent-decoded; clause 1.4.
func TestCaller(t *testing.T) {
	c, err := authenticator(t).Authenticate(head("Authorization: Bearer "+key,
		"X-Authenticated-User-Id:  Zo%C3%AB 100%25\t", "x-authenticated-username: Zo%C3%AB Smith",
		"x-authenticated-roles: ,support, admin ,,", "x-request-id: r-1"))
	if err != nil {
		t.Fatal(err)
	}
	if c.UserID() != "Zo%C3%AB 100%25" || c.Username() != "Zo%C3%AB Smith" {
		t.Errorf("identity = %q, %q", c.UserID(), c.Username())
	}
	if want := []string{"support", "admin"}; !slices.Equal(c.Roles(), want) {
		t.Errorf("roles = %q, want %q", c.Roles(), want)
	}
	if c.RequestID() != "r-1" || c.Generated() {
		t.Errorf("request id = %q, generated %v", c.RequestID(), c.Generated())
	}
}

func TestRolesAreAtMost64(t *testing.T) {
	c, err := authenticator(t).Authenticate(head("Authorization: Bearer "+key, "x-authenticated-user-id: a",
		"x-authenticated-roles: "+strings.Repeat("r,", 100)))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(c.Roles()); got != 64 {
		t.Errorf("%d roles are kept, want 64", got)
	}
}

// Clause 1.2, item 4: the evaluator sends none.
func TestRequestIDIsGenerated(t *testing.T) {
	for _, lines := range [][]string{nil, {"x-request-id: \t"}} {
		c, err := authenticator(t).Authenticate(head(append(lines,
			"Authorization: Bearer "+key, "x-authenticated-user-id: evaluation-harness")...))
		if err != nil {
			t.Fatal(err)
		}
		id, err := uuid.Parse(c.RequestID())
		if err != nil || id.Version() != 4 || !c.Generated() {
			t.Errorf("request id %q (generated %v), want a UUIDv4 of ours", c.RequestID(), c.Generated())
		}
	}
}

// Clause 1.4: the derivation is pinned, since a change renames every user.
func TestPseudonym(t *testing.T) {
	for user, want := range map[string]string{
		"alice": "ddfeb31d-90ca-57a5-b6c4-7c1754291899",
		"bob":   "37b86f38-f2bf-560f-9162-842eb1d83301",
	} {
		if got := Pseudonym(user); got != want {
			t.Errorf("pseudonym of %s = %s, want %s", user, got, want)
		}
	}
	id := uuid.MustParse(Pseudonym("alice"))
	if id.Version() != 5 {
		t.Errorf("version %d, want 5", id.Version())
	}
}

// Clause 1.4: however a caller is printed, the user is not in it.
func TestCallerIsRedacted(t *testing.T) {
	c, err := authenticator(t).Authenticate(head("Authorization: Bearer "+key,
		"x-authenticated-user-id: alice-secret", "x-authenticated-username: Alice Secret"))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("who", "caller", c)
	out := fmt.Sprintf("%v %+v %#v %s %q %d", c, c, c, c, c, c) + log.String() +
		fmt.Sprintf("%v %+v", &c, struct{ C Caller }{c})
	if strings.Contains(strings.ToLower(out), "secret") {
		t.Errorf("the user is printed: %s", out)
	}
	if !strings.Contains(log.String(), "[redacted]") {
		t.Errorf("the log does not say that it was redacted: %s", &log)
	}
}

func FuzzAuthenticate(f *testing.F) {
	f.Add("alice", "Alice", "a,b", "r")
	f.Add(" \t", "\x00", ",,", "")
	f.Add("Zo\xc3\xab", "x\ty", strings.Repeat("r,", 200), "a b")
	f.Fuzz(func(t *testing.T, user, name, roles, request string) {
		h := head("Authorization: Bearer " + key)
		h.Add(HeaderUserID, user)
		h.Add(HeaderUsername, name)
		h.Add(HeaderRoles, roles)
		h.Add(HeaderRequestID, request)
		c, err := authenticator(t).Authenticate(h)
		if err != nil {
			return
		}
		if c.UserID() == "" || len(c.Roles()) > maxRoles || c.RequestID() == "" || len(c.RequestID()) > maxRequestID {
			t.Errorf("accepted a caller out of bounds: %q %d %q", c.UserID(), len(c.Roles()), c.RequestID())
		}
		for _, s := range append([]string{c.UserID(), c.Username(), c.RequestID()}, c.Roles()...) {
			for i := range len(s) {
				if s[i] < 0x20 || s[i] > 0x7e {
					t.Errorf("accepted the byte %#x in %q", s[i], s)
				}
			}
		}
	})
}
