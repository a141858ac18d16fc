package strictjson_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"weir/abi/strictjson"
)

func TestCanonical(t *testing.T) {
	for _, tt := range []struct{ in, want, why string }{
		{` { "b" : 1 , "a" : [ 1 , { } , [ ] ] } `, `{"a":[1,{},[]],"b":1}`, "sorted, no white space, arrays keep their order"},
		{`{"b":{"d":1,"c":2},"a":{"f":1,"e":2}}`, `{"a":{"e":2,"f":1},"b":{"c":2,"d":1}}`, "sorted at every depth"},
		{`{"é":1,"z":2,"😀":3,"":4,"～":5,"Z":6,"a":7,"aa":8}`, `{"":4,"Z":6,"a":7,"aa":8,"z":2,"é":1,"～":5,"😀":3}`, "by bytes, not by UTF-16 units"},
		{`{"\u007a":1,"\u0061":2}`, `{"a":2,"z":1}`, "by the name that the escapes mean"},
		{`"\/\u003c\u003E\u0026\u007f\u0085\u2028\u2029\u00e9\ud83d\ude00"`, "\"/<>&\x7f\u0085\u2028\u2029é😀\"", "nothing else is escaped"},
		{`"\u0008\u0009\u000A\u000c\u000d\u001F\u0000\u0022\u005c"`, `"\b\t\n\f\r\u001f\u0000\"\\"`, "short forms, lower-case hex"},
		{`[0,-0,10,-7,123456789012345678901234567890]`, `[0,0,10,-7,123456789012345678901234567890]`, "integers in plain decimal"},
		{`[5.0,1e3,0.001,1E-5,0.0001,1e15,1e16,123456789.125,-0.0,1.50]`,
			`[5.0,1000.0,0.001,1e-05,0.0001,1000000000000000.0,1e+16,123456789.125,-0.0,1.5]`, "other numbers as Python's repr"},
		{`[true,false,null]`, `[true,false,null]`, "literals"},
	} {
		got, err := strictjson.Canonical(nil, []byte(tt.in))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s:\nCanonical(%s)\n got %s, %v\nwant %s", tt.why, tt.in, got, err, tt.want)
		}
	}
	if b, err := strictjson.Canonical([]byte("x"), []byte(`[1e400]`)); text(err) != "offset 1: number out of range" || string(b) != "x" {
		t.Errorf("a number that is none: %s, %v", b, err)
	}
}

// The claims of the contract's test vectors, 4.6, out of order and spaced, and
// the digests of their canonical form.
func TestCanonicalVectors(t *testing.T) {
	const a = `{"v":1, "exp":1600, "action":"set_ticket_priority", "resource_id":"TKT-1001", "actor_id":"support-rep-1",
		"request_id":"11111111-1111-4111-8111-111111111111", "choice":"high", "expected_choice":"medium", "override_requested":true,
		"rationale":"Customer has followed up twice.", "payload":{"note":"Escalated after the second follow-up."},
		"payload_sha256":"f46d72830f8f388342ac7eac1abed971f0d4ae94c5f7bc0198784706650550ed", "nonce":"22222222-2222-4222-8222-222222222222"}`
	const bPayload = `{"note":"Zo\u00eb\u2019s 2nd follow-up \u2014 \u65e5\u672c\u8a9e \"quoted\"\nnew line \u003cb\u003e\u0026\u2028end\b\f\u001f\u007f\/"}`
	const b = `{"v":1, "exp":4102444800, "action":"set_ticket_priority", "resource_id":"TKT-1001", "actor_id":"support-rep-1",
		"request_id":"11111111-1111-4111-8111-111111111111", "choice":"high", "expected_choice":"medium", "override_requested":true,
		"rationale":"Kundin hat zweimal nachgefragt: «dringend».", "payload":` + bPayload + `,
		"payload_sha256":"efb5546d2091eb5f3faafa10c880c21166456062bd5217f7912db61a3644064c", "nonce":"22222222-2222-4222-8222-222222222222"}`
	const c = `{"payload":{}, "v":1, "exp":1600, "action":"set_ticket_priority", "resource_id":"TKT-1001", "actor_id":"support-rep-1",
		"request_id":"11111111-1111-4111-8111-111111111111", "choice":"high", "expected_choice":"medium", "override_requested":true,
		"rationale":"Customer has followed up twice.",
		"payload_sha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", "nonce":"22222222-2222-4222-8222-222222222222"}`
	const d = `{"action":"set_ticket_priority","actor_id":"support-rep-1","choice":"high","exp":1789899288,"expected_choice":"medium",
		"nonce":"db5d3e99-547e-459d-a20f-a95d4da98fd4","override_requested":true,
		"payload":{"note":"Documented after the customer's second follow-up. Unicode: Zoë ✓"}}`
	for _, tt := range []struct{ name, value, sha string }{
		{"4.6 A", a, "229f823994666dfd6ec30c595abdf8e52daf7e40dab37d1f18b97ddb5dffec3c"},
		{"4.6 A payload", `{"note":"Escalated after the second follow-up."}`, "f46d72830f8f388342ac7eac1abed971f0d4ae94c5f7bc0198784706650550ed"},
		{"4.6 B", b, "843781f5f27c9c112110aa0cacb282a45dc171ca8d38f90dc22256586f1cbe85"},
		{"4.6 B payload", bPayload, "efb5546d2091eb5f3faafa10c880c21166456062bd5217f7912db61a3644064c"},
		{"4.6 C", c, "b97989b8c807592674e3a54354cccac619c7865b0d69cb38a034cf39f9e9e11c"},
		{"4.3 empty payload", `{ }`, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},
		{"4.6 D payload", `{"note":"Documented after the customer's second follow-up. Unicode: Zo\u00eb \u2713"}`, "51acbb10cfcf2ea800d127627afecafdbb65d7b142c8d7f7a2bd1f45cb91f0a0"},
		{"7 prompts", `[{"task":"self_check_input","max_tokens":4,"content":"Answer: \u00e9\n"}]`, "79a7cc8ab6d52d287aec0227c1ef20c590773367be1f26df7fcb325bc332106d"},
	} {
		got, err := strictjson.Canonical(nil, []byte(tt.value))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		sum := sha256.Sum256(got)
		if sha := hex.EncodeToString(sum[:]); sha != tt.sha {
			t.Errorf("%s: digest %s, want %s of\n%s", tt.name, sha, tt.sha, got)
		}
	}
	if got, err := strictjson.Canonical(nil, []byte(a)); err != nil || len(got) != 458 {
		t.Errorf("4.6 A has %d bytes, %v, want 458", len(got), err)
	}
	if got, err := strictjson.Canonical(nil, []byte(d)); err != nil || string(got[:10]) != `{"action":` {
		t.Errorf("4.6 D: %s, %v", got, err)
	}
}
