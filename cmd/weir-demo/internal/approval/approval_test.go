package approval_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir-demo/internal/approval"
	"weir/cmd/weir-demo/internal/approval/approvaltest"
)

const (
	secret      = "a-test-secret-of-at-least-24-characters"
	crossSecret = "cross-check-secret-of-at-least-24"

	tokenA = "eyJhY3Rpb24iOiJzZXRfdGlja2V0X3ByaW9yaXR5IiwiYWN0b3JfaWQiOiJzdXBwb3J0LXJlcC0xIiwiY2hvaWNlIjoiaGlnaCIsImV4cCI6MTYwMCwiZXhwZWN0ZWRfY2hvaWNlIjoibWVkaXVtIiwibm9uY2UiOiIyMjIyMjIyMi0yMjIyLTQyMjItODIyMi0yMjIyMjIyMjIyMjIiLCJvdmVycmlkZV9yZXF1ZXN0ZWQiOnRydWUsInBheWxvYWQiOnsibm90ZSI6IkVzY2FsYXRlZCBhZnRlciB0aGUgc2Vjb25kIGZvbGxvdy11cC4ifSwicGF5bG9hZF9zaGEyNTYiOiJmNDZkNzI4MzBmOGYzODgzNDJhYzdlYWMxYWJlZDk3MWYwZDRhZTk0YzVmN2JjMDE5ODc4NDcwNjY1MDU1MGVkIiwicmF0aW9uYWxlIjoiQ3VzdG9tZXIgaGFzIGZvbGxvd2VkIHVwIHR3aWNlLiIsInJlcXVlc3RfaWQiOiIxMTExMTExMS0xMTExLTQxMTEtODExMS0xMTExMTExMTExMTEiLCJyZXNvdXJjZV9pZCI6IlRLVC0xMDAxIiwidiI6MX0.8CdYbS1icit-c2v_QmhRzsJqu5fnxBUELYfKIPFqaYQ"
	tokenB = "eyJhY3Rpb24iOiJzZXRfdGlja2V0X3ByaW9yaXR5IiwiYWN0b3JfaWQiOiJzdXBwb3J0LXJlcC0xIiwiY2hvaWNlIjoiaGlnaCIsImV4cCI6NDEwMjQ0NDgwMCwiZXhwZWN0ZWRfY2hvaWNlIjoibWVkaXVtIiwibm9uY2UiOiIyMjIyMjIyMi0yMjIyLTQyMjItODIyMi0yMjIyMjIyMjIyMjIiLCJvdmVycmlkZV9yZXF1ZXN0ZWQiOnRydWUsInBheWxvYWQiOnsibm90ZSI6Ilpvw6vigJlzIDJuZCBmb2xsb3ctdXAg4oCUIOaXpeacrOiqniBcInF1b3RlZFwiXG5uZXcgbGluZSA8Yj4m4oCoZW5kXGJcZlx1MDAxZn8vIn0sInBheWxvYWRfc2hhMjU2IjoiZWZiNTU0NmQyMDkxZWI1ZjNmYWFmYTEwYzg4MGMyMTE2NjQ1NjA2MmJkNTIxN2Y3OTEyZGI2MWEzNjQ0MDY0YyIsInJhdGlvbmFsZSI6Ikt1bmRpbiBoYXQgendlaW1hbCBuYWNoZ2VmcmFndDogwqtkcmluZ2VuZMK7LiIsInJlcXVlc3RfaWQiOiIxMTExMTExMS0xMTExLTQxMTEtODExMS0xMTExMTExMTExMTEiLCJyZXNvdXJjZV9pZCI6IlRLVC0xMDAxIiwidiI6MX0" +
		".Pr9Zcv_dsijQOswqhzN04fcbavOAx-yJBFe7VPx6MaA"
)

func at(second int64) approval.Options {
	return approval.Options{Now: func() time.Time { return time.Unix(second, 999_999_999) }}
}

func verifier(t *testing.T, secret string, second int64) *approval.Verifier {
	t.Helper()
	v, err := approval.New(secret, at(second))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func bound(current string) approval.Bound {
	return approval.Bound{Action: "set_ticket_priority", ResourceID: "TKT-1001",
		RequestID: "11111111-1111-4111-8111-111111111111", Current: &current}
}

// claimsA are those of vector A in 4.6.
func claimsA() map[string]any {
	return approvaltest.Claims(time.Unix(1000, 0), "22222222-2222-4222-8222-222222222222")
}

func with(claims map[string]any, name string, value any) map[string]any {
	claims = maps.Clone(claims)
	claims[name] = value
	return claims
}

func without(claims map[string]any, name string) map[string]any {
	claims = maps.Clone(claims)
	delete(claims, name)
	return claims
}

func withPayload(claims map[string]any, payload any) map[string]any {
	claims = maps.Clone(claims)
	approvaltest.SetPayload(claims, payload)
	return claims
}

// 4.6, the vectors as they are verified; that our own tests make the same
// bytes is checked with them.
func TestVectors(t *testing.T) {
	b := withPayload(with(with(claimsA(), "exp", 4102444800), "rationale", "Kundin hat zweimal nachgefragt: «dringend»."),
		map[string]any{"note": "Zoë’s 2nd follow-up — 日本語 \"quoted\"\nnew line <b>&\u2028end\b\f\x1f\x7f/"})
	d := withPayload(with(with(with(claimsA(), "exp", 1789899288), "nonce", "db5d3e99-547e-459d-a20f-a95d4da98fd4"),
		"rationale", "Customer has followed up twice with no resolution."),
		map[string]any{"note": "Documented after the customer's second follow-up. Unicode: Zoë ✓"})
	for name, tc := range map[string]struct {
		secret    string
		claims    map[string]any
		now       int64
		canonical string // SHA-256
		payload   string // SHA-256
		signature string
		token     string
	}{
		"A": {secret, claimsA(), 1000, "229f823994666dfd6ec30c595abdf8e52daf7e40dab37d1f18b97ddb5dffec3c",
			"f46d72830f8f388342ac7eac1abed971f0d4ae94c5f7bc0198784706650550ed", "8CdYbS1icit-c2v_QmhRzsJqu5fnxBUELYfKIPFqaYQ", tokenA},
		"B": {crossSecret, b, 4102444800 - 600, "843781f5f27c9c112110aa0cacb282a45dc171ca8d38f90dc22256586f1cbe85",
			"efb5546d2091eb5f3faafa10c880c21166456062bd5217f7912db61a3644064c", "Pr9Zcv_dsijQOswqhzN04fcbavOAx-yJBFe7VPx6MaA", tokenB},
		"C": {secret, withPayload(claimsA(), map[string]any{}), 1000, "b97989b8c807592674e3a54354cccac619c7865b0d69cb38a034cf39f9e9e11c",
			"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", "ZumiA4Qxvo0175lhqXfRSjx2LUWWPWIfCfRNlJNuYrI", ""},
		"D": {secret, d, 1789899288, "",
			"51acbb10cfcf2ea800d127627afecafdbb65d7b142c8d7f7a2bd1f45cb91f0a0", "X21SyZoYnU8OU8fYk23shsM6JugTdWQBhUuyWsNeWtc", ""},
	} {
		sum := sha256.Sum256(approvaltest.Canonical(tc.claims))
		if got := hex.EncodeToString(sum[:]); tc.canonical != "" && got != tc.canonical {
			t.Errorf("%s: the canonical claims have the digest %s", name, got)
		}
		token := approvaltest.Mint(tc.secret, tc.claims)
		if tc.token != "" && token != tc.token || !strings.HasSuffix(token, "."+tc.signature) {
			t.Errorf("%s: the token is %s", name, token)
		}
		claims, err := verifier(t, tc.secret, tc.now).Decode(token)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := claims.Verify(bound("medium")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		sum = sha256.Sum256(claims.Payload)
		if hex.EncodeToString(sum[:]) != tc.payload || claims.ActorID != "support-rep-1" || *claims.Choice != "high" ||
			*claims.Rationale != tc.claims["rationale"] || !claims.OverrideRequested || fmt.Sprint(claims.Expires) != fmt.Sprint(tc.claims["exp"]) {
			t.Errorf("%s: got %+v", name, claims)
		}
		if note, _ := tc.claims["payload"].(map[string]any)["note"].(string); note != "" && *claims.Note != note || note == "" && claims.Note != nil {
			t.Errorf("%s: the note is %v", name, claims.Note)
		}
	}
}

// 4.4, decode: every check with its text, and what stands first where several
// would fail.
func TestDecode(t *testing.T) {
	const now = 1000
	a := claimsA()
	payload, signature, _ := strings.Cut(tokenA, ".")
	mint := func(claims map[string]any) string { return approvaltest.Mint(secret, claims) }
	text := func(s string) string { return approvaltest.Sign(secret, []byte(s)) }
	canonical := string(approvaltest.Canonical(a))
	for name, tc := range map[string]struct {
		token string
		want  error
	}{
		"genuine":                {tokenA, nil},
		"empty":                  {"", approval.ErrFormat},
		"no dot":                 {payload, approval.ErrFormat},
		"second dot":             {tokenA + ".x", approval.ErrSignatureCoding},
		"padded signature":       {tokenA + "=", approval.ErrSignatureCoding},
		"line break":             {payload + "." + signature[:10] + "\n" + signature[10:], approval.ErrSignatureCoding},
		"standard alphabet":      {payload + "." + strings.NewReplacer("-", "+", "_", "/").Replace(signature), approval.ErrSignatureCoding},
		"unused bits":            {tokenA[:len(tokenA)-1] + "R", approval.ErrSignatureCoding},
		"no signature":           {payload + ".", approval.ErrSignature},
		"short signature":        {payload + "." + signature[:40], approval.ErrSignature},
		"other signature":        {payload + "." + "A" + signature[1:], approval.ErrSignature},
		"other secret":           {approvaltest.Mint(crossSecret, a), approval.ErrSignature},
		"tampered payload":       {"f" + payload[1:] + "." + signature, approval.ErrSignature},
		"padded payload":         {payload + "=." + signature, approval.ErrSignature},
		"signed padding":         {approvaltest.Join(secret, payload+"="), approval.ErrPayloadCoding},
		"signed line break":      {approvaltest.Join(secret, payload+"\n"), approval.ErrPayloadCoding},
		"signed nothing":         {approvaltest.Join(secret, ""), approval.ErrPayload},
		"no JSON":                {text("{"), approval.ErrPayload},
		"no object":              {text("[]"), approval.ErrPayload},
		"trailing data":          {text(canonical + "{}"), approval.ErrPayload},
		"repeated claim":         {text(`{"v":1,` + canonical[1:]), approval.ErrPayload},
		"repeated in payload":    {text(strings.Replace(canonical, `"payload":{`, `"payload":{"note":"other",`, 1)), approval.ErrPayload},
		"claim in another case":  {text(strings.Replace(canonical, `"nonce"`, `"Nonce"`, 1)), approval.ErrPayload},
		"bad UTF-8":              {text(strings.Replace(canonical, "Customer", "\xff", 1)), approval.ErrPayload},
		"lone surrogate":         {text(strings.Replace(canonical, "Customer", `\ud800`, 1)), approval.ErrPayload},
		"fraction":               {text(strings.Replace(canonical, `"exp":1600`, `"exp":1600.0`, 1)), approval.ErrPayload},
		"huge time":              {text(strings.Replace(canonical, `"exp":1600`, `"exp":99999999999999999999`, 1)), approval.ErrPayload},
		"null actor":             {mint(with(a, "actor_id", nil)), approval.ErrPayload},
		"number as choice":       {mint(with(a, "choice", 1)), approval.ErrPayload},
		"text as override":       {mint(with(a, "override_requested", "true")), approval.ErrPayload},
		"payload is a list":      {mint(withPayload(a, []any{})), approval.ErrPayload},
		"note is a number":       {mint(withPayload(a, map[string]any{"note": 1})), approval.ErrPayload},
		"version":                {mint(with(a, "v", 2)), approval.ErrVersion},
		"version before time":    {mint(with(with(a, "v", 2), "exp", 0)), approval.ErrVersion},
		"shape before version":   {mint(without(with(a, "v", 2), "nonce")), approval.ErrPayload},
		"expired":                {mint(with(a, "exp", now-1)), approval.ErrExpired},
		"expired long ago":       {mint(with(a, "exp", math.MinInt64)), approval.ErrExpired},
		"last second":            {mint(with(a, "exp", now)), nil},
		"longest":                {mint(with(a, "exp", now+1860)), nil},
		"too long":               {mint(with(a, "exp", now+1861)), approval.ErrLifetime},
		"for ever":               {mint(with(a, "exp", math.MaxInt64)), approval.ErrLifetime},
		"unknown claim":          {mint(with(a, "scope", map[string]any{"x": []int{1}})), nil},
		"without choice":         {mint(without(a, "choice")), nil},
		"without expectation":    {mint(without(a, "expected_choice")), nil},
		"without override":       {mint(without(a, "override_requested")), nil},
		"without rationale":      {mint(without(a, "rationale")), nil},
		"without payload":        {mint(without(a, "payload")), nil},
		"without payload digest": {mint(without(a, "payload_sha256")), nil},
	} {
		claims, err := verifier(t, secret, now).Decode(tc.token)
		if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
		if (err == nil) != (claims != nil) {
			t.Errorf("%s: claims %v with error %v", name, claims, err)
		}
	}
	for _, claim := range []string{"v", "exp", "action", "resource_id", "actor_id", "request_id", "nonce"} {
		if _, err := verifier(t, secret, now).Decode(mint(without(a, claim))); !errors.Is(err, approval.ErrPayload) {
			t.Errorf("without %s: got %v", claim, err)
		}
	}
}

// 4.4, verify: the same for what a token is bound to.
func TestVerify(t *testing.T) {
	a := claimsA()
	other := "33333333-3333-4333-8333-333333333333"
	stray := with(a, "payload", map[string]any{"note": "another"})
	none := func(b approval.Bound) approval.Bound { b.Current = nil; return b }
	change := func(f func(*approval.Bound)) approval.Bound { b := bound("medium"); f(&b); return b }
	for name, tc := range map[string]struct {
		claims map[string]any
		bound  approval.Bound
		want   error
	}{
		"bound":                    {a, bound("medium"), nil},
		"other action":             {a, change(func(b *approval.Bound) { b.Action = "close_ticket" }), approval.ErrBinding},
		"other resource":           {a, change(func(b *approval.Bound) { b.ResourceID = "TKT-1002" }), approval.ErrBinding},
		"resource before request":  {a, change(func(b *approval.Bound) { b.ResourceID, b.RequestID = "TKT-1002", other }), approval.ErrBinding},
		"other request":            {a, change(func(b *approval.Bound) { b.RequestID = other }), approval.ErrRequest},
		"request before payload":   {stray, change(func(b *approval.Bound) { b.RequestID = other }), approval.ErrRequest},
		"other payload":            {stray, bound("medium"), approval.ErrPayloadDigest},
		"payload before choice":    {stray, bound("low"), approval.ErrPayloadDigest},
		"payload without digest":   {without(a, "payload_sha256"), bound("medium"), approval.ErrPayloadDigest},
		"digest without payload":   {without(a, "payload"), bound("medium"), approval.ErrPayloadDigest},
		"upper-case digest":        {with(a, "payload_sha256", strings.ToUpper(a["payload_sha256"].(string))), bound("medium"), approval.ErrPayloadDigest},
		"no payload at all":        {withPayload(a, nil), bound("medium"), nil},
		"empty payload":            {withPayload(a, map[string]any{}), bound("medium"), nil},
		"other names in payload":   {withPayload(a, map[string]any{"b": 1, "a": []any{nil, "x\u2028<"}}), bound("medium"), nil},
		"record has changed":       {a, bound("low"), approval.ErrExpectedChoice},
		"no expectation":           {without(a, "expected_choice"), bound("medium"), approval.ErrExpectedChoice},
		"action without a choice":  {with(with(a, "choice", nil), "expected_choice", nil), none(bound("")), nil},
		"choice for none":          {with(a, "expected_choice", nil), none(bound("")), approval.ErrUnexpectedChoice},
		"expectation for none":     {with(a, "choice", nil), none(bound("")), approval.ErrUnexpectedChoice},
		"choice before identity":   {with(a, "actor_id", " "), bound("low"), approval.ErrExpectedChoice},
		"blank actor":              {with(a, "actor_id", " \t"), bound("medium"), approval.ErrCorrelation},
		"blank nonce":              {with(a, "nonce", ""), bound("medium"), approval.ErrCorrelation},
		"blank request":            {with(a, "request_id", " "), change(func(b *approval.Bound) { b.RequestID = " " }), approval.ErrCorrelation},
		"no choice is policy":      {with(a, "choice", nil), bound("medium"), nil},
		"identity is not decoded":  {with(a, "actor_id", "Zo%C3%AB"), bound("medium"), nil},
		"override is not believed": {with(a, "override_requested", false), bound("medium"), nil},
	} {
		claims, err := verifier(t, secret, 1000).Decode(approvaltest.Mint(secret, tc.claims))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := claims.Verify(tc.bound); !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
}

// 4.1: bytes count, and blank is not a secret.
func TestSecret(t *testing.T) {
	for text, ok := range map[string]bool{
		"": false, strings.Repeat("x", 23): false, strings.Repeat("x", 24): true,
		strings.Repeat(" ", 40): false, strings.Repeat("é", 12): true, " " + strings.Repeat("x", 23): true,
	} {
		if _, err := approval.New(text, approval.Options{}); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	spaced := " " + secret + "\n"
	if _, err := verifier(t, spaced, 1000).Decode(tokenA); !errors.Is(err, approval.ErrSignature) {
		t.Errorf("white space of the secret does not count: %v", err)
	}
	if _, err := verifier(t, spaced, 1000).Decode(approvaltest.Mint(spaced, claimsA())); err != nil {
		t.Error(err)
	}
}

// FuzzToken: whatever is sent, only what the secret signed is decoded.
func FuzzToken(f *testing.F) {
	f.Add(tokenA)
	f.Add(tokenB)
	f.Add("a.b.c")
	f.Add(".")
	v, err := approval.New(secret, at(1000))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token string) {
		claims, err := v.Decode(token)
		if (claims == nil) == (err == nil) {
			t.Fatalf("claims %v with error %v", claims, err)
		}
		if first, _, _ := strings.Cut(token, "."); err == nil && approvaltest.Join(secret, first) != token {
			t.Errorf("a token that was not signed is accepted")
		}
	})
}

// FuzzClaims signs anything, so that the claims' own decoder is reached.
func FuzzClaims(f *testing.F) {
	f.Add(string(approvaltest.Canonical(claimsA())))
	f.Add(`{"v":1,"exp":1000,"action":"","resource_id":"","actor_id":"","request_id":"","nonce":"","payload":{"note":null}}`)
	f.Add(`{"v":1,"v":1}`)
	v, err := approval.New(secret, at(1000))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		claims, err := v.Decode(approvaltest.Sign(secret, []byte(payload)))
		if err != nil {
			return
		}
		if claims.Expires < 1000 || claims.Expires > 1000+1860 {
			t.Errorf("accepted at %d", claims.Expires)
		}
		b := approval.Bound{Action: claims.Action, ResourceID: claims.ResourceID, RequestID: claims.RequestID, Current: claims.ExpectedChoice}
		if claims.Verify(b) == nil && (strings.TrimSpace(claims.ActorID) == "" || claims.Choice != nil && claims.ExpectedChoice == nil) {
			t.Errorf("verified %+v", claims)
		}
	})
}

// FuzzRequest: a body is read as encoding/json reads it, or refused.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{`{"approval_token":"a.b","request_id":"c"}`, `{"approval_token":"a"}`, `{"request_id":"\ud800"}`, "{}", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		got, err := approval.DecodeRequest([]byte(body))
		if err != nil {
			if got != (approval.Request{}) || !errors.Is(err, approval.ErrPayload) {
				t.Errorf("%+v with %v", got, err)
			}
			return
		}
		var want struct {
			Token     *string `json:"approval_token"`
			RequestID *string `json:"request_id"`
		}
		if err := json.Unmarshal([]byte(body), &want); err != nil || want.Token == nil || want.RequestID == nil ||
			*want.Token != got.Token || *want.RequestID != got.RequestID {
			t.Errorf("%q is read as %+v", body, got)
		}
	})
}
