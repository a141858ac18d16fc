//go:build unix

package main

import (
	"strings"
	"testing"

	"weir/cmd/weir-demo/internal/gateway/gatewaytest"
)

// A command runs against the agent, gets its address and key, and decides the
// exit code.
func TestExec(t *testing.T) {
	const script = `case $0 in http://127.0.0.1:*) ;; *) exit 8 ;; esac; test -n "$NAT_GATEWAY_API_KEY" || exit 9; echo said; exit `
	for _, want := range []string{"0", "7"} {
		code, stdout, stderr := demoWith(t.Context(), t, gatewaytest.Good, "--exec", "sh", "-c", script+want, "{url}")
		if got := string(rune('0' + code)); got != want || !strings.HasSuffix(stdout.String(), "said\n") || stderr.String() != "" {
			t.Errorf("code %s, expected %s\n%s\n%s", got, want, stdout, stderr)
		}
	}
	if code, _, stderr := demoWith(t.Context(), t, gatewaytest.Good, "--exec", "no-such-program-here"); code != 1 || !strings.Contains(stderr.String(), "no-such-program-here") {
		t.Errorf("code %d\n%s", code, stderr)
	}
	if code, _, stderr := demoWith(t.Context(), t, gatewaytest.Good, "--exec"); code != 2 || !strings.Contains(stderr.String(), "expected a command after --exec") {
		t.Errorf("code %d\n%s", code, stderr)
	}
}
