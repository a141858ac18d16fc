package approval_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"weir/abi"
	"weir/host/approval"
	"weir/host/fault"
)

// vectorA is vector A of 4.6, byte for byte.
const vectorA = `{"action":"set_ticket_priority","actor_id":"support-rep-1","choice":"high","exp":1600,"expected_choice":"medium","nonce":"22222222-2222-4222-8222-222222222222","override_requested":true,"payload":{"note":"Escalated after the second follow-up."},"payload_sha256":"f46d72830f8f388342ac7eac1abed971f0d4ae94c5f7bc0198784706650550ed","rationale":"Customer has followed up twice.","request_id":"11111111-1111-4111-8111-111111111111","resource_id":"TKT-1001","v":1}`

// 4.6: the vectors, from the proposal and the answers to the token.
func TestVectors(t *testing.T) {
	nasty := "Zoë’s 2nd follow-up — 日本語 \"quoted\"\nnew line <b>&\u2028end\b\f\u001f\u007f/"
	tests := []struct {
		name, secret, note, reason string
		now                        int64
		nonce                      string
		canonical, payload         string // SHA-256 of the claims; of the payload
		signature                  string
	}{
		{"A", secret, "Escalated after the second follow-up.", "Customer has followed up twice.", 1000, rep().Nonce,
			"229f823994666dfd6ec30c595abdf8e52daf7e40dab37d1f18b97ddb5dffec3c",
			"f46d72830f8f388342ac7eac1abed971f0d4ae94c5f7bc0198784706650550ed",
			"8CdYbS1icit-c2v_QmhRzsJqu5fnxBUELYfKIPFqaYQ"},
		{"B", "cross-check-secret-of-at-least-24", nasty, "Kundin hat zweimal nachgefragt: «dringend».", 4102444800 - 600, rep().Nonce,
			"843781f5f27c9c112110aa0cacb282a45dc171ca8d38f90dc22256586f1cbe85",
			"efb5546d2091eb5f3faafa10c880c21166456062bd5217f7912db61a3644064c",
			"Pr9Zcv_dsijQOswqhzN04fcbavOAx-yJBFe7VPx6MaA"},
		{"C", secret, "", "Customer has followed up twice.", 1000, rep().Nonce,
			"b97989b8c807592674e3a54354cccac619c7865b0d69cb38a034cf39f9e9e11c",
			"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
			"ZumiA4Qxvo0175lhqXfRSjx2LUWWPWIfCfRNlJNuYrI"},
		{"D", secret, "Documented after the customer's second follow-up. Unicode: Zoë ✓", "Customer has followed up twice with no resolution.",
			1789899288 - 600, "db5d3e99-547e-459d-a20f-a95d4da98fd4", "",
			"51acbb10cfcf2ea800d127627afecafdbb65d7b142c8d7f7a2bd1f45cb91f0a0",
			"X21SyZoYnU8OU8fYk23shsM6JugTdWQBhUuyWsNeWtc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			who := rep()
			who.Now, who.Nonce = time.Unix(tt.now, 0), tt.nonce
			step := escalation(t, catalogOf(t), tt.note).Next(who, answered("high", tt.reason))
			if step.Claims == nil {
				t.Fatalf("no claims: %s", step.Result)
			}
			if tt.canonical != "" {
				wantText(t, "digest of the claims", digest(step.Claims), tt.canonical)
			}
			var c struct {
				Digest string `json:"payload_sha256"`
			}
			if err := json.Unmarshal(step.Claims, &c); err != nil {
				t.Fatal(err)
			}
			wantText(t, "digest of the payload", c.Digest, tt.payload)
			token, err := approval.Mint([]byte(tt.secret), step.Claims)
			if err != nil {
				t.Fatal(err)
			}
			payload, signature, _ := strings.Cut(token, ".")
			wantText(t, "signature", signature, tt.signature)
			if decoded, err := base64.RawURLEncoding.Strict().DecodeString(payload); err != nil || string(decoded) != string(step.Claims) {
				t.Errorf("the payload is not the claims: %v", err)
			}
			again, err := approval.Mint([]byte(tt.secret), step.Claims)
			if err != nil || again != token {
				t.Errorf("minted again: another token, %v", err)
			}
		})
	}
	wantText(t, "vector A", string(claimsOf(t, "Escalated after the second follow-up.")), vectorA)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// 4.1: the secret is used as it is, and only blankness is judged trimmed. Claims
// that Next did not make are not signed.
func TestMintRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ secret, claims string }{
		"no secret":             {"", vectorA},
		"short secret":          {secret[:23], vectorA},
		"blank secret":          {strings.Repeat(" ", 30), vectorA},
		"no claims":             {secret, ""},
		"not canonical":         {secret, vectorA + " "},
		"another order":         {secret, strings.Replace(vectorA, `"exp":1600,`, "", 1)[:len(vectorA)-12] + `,"exp":1600}`},
		"a claim less":          {secret, strings.Replace(vectorA, `"exp":1600,`, "", 1)},
		"a claim more":          {secret, strings.Replace(vectorA, `"v":1`, `"v":1,"w":1`, 1)},
		"blank actor":           {secret, strings.Replace(vectorA, "support-rep-1", " ", 1)},
		"blank request":         {secret, strings.Replace(vectorA, "11111111-1111-4111-8111-111111111111", "", 1)},
		"exp of another type":   {secret, strings.Replace(vectorA, "1600", `"1600"`, 1)},
		"actor of another type": {secret, strings.Replace(vectorA, `"support-rep-1"`, `null`, 1)},
	} {
		token, err := approval.Mint([]byte(tt.secret), abi.Raw(tt.claims))
		if err == nil || token != "" {
			t.Errorf("%s: signed", name)
			continue
		}
		if fault.Of(err) != fault.Invalid || strings.Contains(err.Error(), "support-rep") || tt.secret != "" && strings.Contains(err.Error(), tt.secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	padded := " " + secret + " "
	one, err := approval.Mint([]byte(padded), abi.Raw(vectorA))
	if err != nil {
		t.Fatal(err)
	}
	if other, _ := approval.Mint([]byte(secret), abi.Raw(vectorA)); one == other {
		t.Error("the secret was trimmed")
	}
	if _, err := approval.Mint([]byte(strings.Repeat("é", 24)), abi.Raw(vectorA)); err != nil {
		t.Errorf("24 characters: %v", err)
	}
}

// 4.3: thirteen claims, null where nothing was asked for.
func TestClaims(t *testing.T) {
	c := catalogOf(t, func(a *approval.Action) { a.Rationale = approval.RationaleNone })
	step := escalation(t, c, "").Next(rep(), answered("low"))
	contains(t, "without a reason", string(step.Claims), `"rationale":null`, `"choice":"low"`, `"override_requested":true`, `"payload":{}`)
	var all map[string]any
	if err := json.Unmarshal(step.Claims, &all); err != nil || len(all) != 13 {
		t.Errorf("%d claims, %v", len(all), err)
	}
	if _, err := approval.Mint([]byte(secret), step.Claims); err != nil {
		t.Error(err)
	}
}
