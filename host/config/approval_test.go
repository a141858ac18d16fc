package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// approving is a configuration with approvals on.
func approving(more string) string {
	return minimal + "[actions.change]\nenabled = true\n" + more
}

func asking() vars {
	return keys().with("HITL_APPROVAL_SECRET", strings.Repeat("s", 24)).with("HITL_ENABLE_INTERACTIVE", "true")
}

// agent-service.md 8.1: whole seconds, floor 5, read only where approvals are on.
func TestInteractionTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 600 * time.Second, "30": 30 * time.Second, "0": 5 * time.Second, "4": 5 * time.Second} {
		if c := mustLoad(t, approving(""), asking().with("HITL_INTERACTION_TIMEOUT_SECONDS", text)); c.Approvals.Timeout != want {
			t.Errorf("%q: %s, want %s", text, c.Approvals.Timeout, want)
		}
	}
	_, err := load(t, approving(""), asking().with("HITL_INTERACTION_TIMEOUT_SECONDS", "soon"))
	wantProblems(t, err, `environment HITL_INTERACTION_TIMEOUT_SECONDS: expected a whole number that is not negative, got "soon"`)
	if c := mustLoad(t, minimal, keys().with("HITL_INTERACTION_TIMEOUT_SECONDS", "30")); c.Approvals.Timeout != 600*time.Second {
		t.Errorf("approvals are off and the variable was read: %s", c.Approvals.Timeout)
	}
	if c := mustLoad(t, approving("[approvals]\ntimeout = '1m'\n"), asking()); c.Approvals.Timeout != time.Minute {
		t.Errorf("of the file: %s", c.Approvals.Timeout)
	}
}

func TestApprovalRefusals(t *testing.T) {
	const at = "agent.toml: [actions.change] "
	tests := []struct {
		name, text string
		want       []string
	}{
		{"action", "action = ' '\ndescription = ''\nchoices = ['one']\nrationale = 'maybe'\ntoken_ttl = '59s'\nmax_summary = 0\nmax_note = 5000\n", []string{
			at + "action: expected the name that the executing server knows",
			at + "description: expected text for the model",
			at + "choices: expected at least 2, got 1",
			at + `rationale: expected "required" or "none", got "maybe"`,
			at + "token_ttl: expected 1m0s to 30m0s, got 59s",
			at + "max_summary: expected 1 to 4096, got 0",
			at + "max_note: expected 1 to 4096, got 5000",
		}},
		{"unknown keys", "[actions.change.texts]\nkep = 'x'\n[actions.change.arguments]\nticket = 'x'\n", []string{
			`agent.toml:11: unknown key [actions.change.texts] kep, did you mean "keep"?`,
			`agent.toml:13: unknown key [actions.change.arguments] ticket`,
		}},
		{"waiting", "[approvals]\non_disconnect = 'wait'\nmax_pending = 0\ntimeout = '4s'\n", []string{
			`agent.toml: [approvals] on_disconnect: expected "cancel" or "park", got "wait"`,
			`agent.toml: [approvals] max_pending: expected at least 1, got 0`,
			`agent.toml: [approvals] timeout: expected at least 5s, got 4s`,
		}},
		{"run", "[run]\nmax_per_user = 0\nkeep_events = '0s'\n", []string{
			`agent.toml: [run] keep_events: expected a duration above zero, got 0s`,
			`agent.toml: [run] max_per_user: expected at least 1, got 0`,
		}},
		{"store", "[store]\nbackend = 'jetstream'\ndir = ' '\nurl = 'nats://user:password@host'\nreplicas = 2\nretention = '59m'\ncontent = 'off'\nsync = '2m'\nmax_bytes = '1MiB'\ntls_key = 'k'\n", []string{
			`agent.toml: [store] dir: expected a folder`,
			`agent.toml: [store] url: expected nats:// or tls:// URLs with a host, without user and password, separated by commas`,
			`agent.toml: [store] tls_key: expected tls_cert and tls_key together`,
			`agent.toml: [store] replicas: expected 1, 3 or 5, got 2`,
			`agent.toml: [store] retention: expected at least 1h, got 59m0s`,
			`agent.toml: [store] content: expected "full" or "digest", got "off"`,
			`agent.toml: [store] sync: expected 0s to 1m0s, got 2m0s`,
			`agent.toml: [store] max_bytes: expected at least 64MiB, got 1MiB`,
		}},
		{"files without a server", "[store]\ncredentials = 'c'\ntls_ca = 'a'\n", []string{
			`agent.toml: [store] credentials: expected only with url: a server in this process needs none`,
			`agent.toml: [store] tls_ca: expected only with url or a cluster: a server in this process needs none`,
		}},
		{"a server alone", "[store]\nreplicas = 3\nretention = '1h'\n[approvals]\ntimeout = '31m'\n", []string{
			`agent.toml: [store] replicas: expected 1 for a server in this process that is alone`,
			`agent.toml: [store] retention: expected at least twice [approvals] timeout: a question must not outlive its log`,
		}},
		{"half a cluster", "[store.cluster]\nlisten = '127.0.0.1:1'\n", []string{
			`agent.toml: [store.cluster] name: expected a name: the table has other keys`,
		}},
		{"a cluster", "[store]\nurl = 'nats://a'\n[store.cluster]\nname = 'A'\nserver = ''\nlisten = '10.0.0.1:6222'\nroutes = 'nats-route://u:p@a'\n", []string{
			`agent.toml: [store.cluster] name: expected a name of a-z, 0-9 and -, at most 63, got "A"`,
			`agent.toml: [store.cluster] name: expected no cluster where url names a server elsewhere`,
			`agent.toml: [store.cluster] server: expected a name of a-z, 0-9 and -, at most 63, got ""`,
			`agent.toml: [store.cluster] routes: expected nats-route:// URLs with a host, without user and password, separated by commas`,
			`agent.toml: [store.cluster] user: expected a user, and WEIR_STORE_CLUSTER_PASSWORD: 10.0.0.1:6222 can be reached from other machines`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, approving(tt.text), asking())
			wantProblems(t, err, tt.want...)
		})
	}
	_, err := load(t, minimal+"[actions.get_ticket]\n", keys())
	wantProblems(t, err, "agent.toml: [actions.get_ticket] enabled: expected a tool that [tools.mcp] include does not list: those are read-only")
}

func TestStoreAddresses(t *testing.T) {
	for url, ok := range map[string]bool{
		"nats://a:4222": true, "tls://a,nats://b:4222": true, "nats://a, tls://b/": true,
		"http://a": false, "a:4222": false, "nats://": false, "nats://a,": false, "nats://token@a": false, "nats://a/b": false, "nats://a?x=1": false,
	} {
		_, err := load(t, minimal+"[store]\nurl = '"+url+"'\n", keys())
		if (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
		if err != nil && strings.Contains(err.Error(), "@") {
			t.Errorf("the refusal quotes %q", url)
		}
	}
	const cluster = "[store]\nreplicas = 3\n[store.cluster]\nname = 'a'\nserver = 'a-1'\nlisten = '%s:6222'\nroutes = 'nats-route://127.0.0.1:1, nats-route://127.0.0.1:2'\n"
	joined := mustLoad(t, minimal+fmt.Sprintf(cluster, "127.0.0.1"), keys())
	if got := joined.Store.Cluster.RouteURLs(); len(got) != 2 || got[1] != "nats-route://127.0.0.1:2" || joined.Store.URLs() != nil {
		t.Errorf("routes %q", got)
	}
	if c := mustLoad(t, minimal+fmt.Sprintf(cluster, "10.0.0.1")+"user = 'weir'\n", keys().with("WEIR_STORE_CLUSTER_PASSWORD", " p ")); c.Store.Cluster.Password.Reveal() != "p" {
		t.Error("the password is not there")
	}
	_, err := load(t, minimal+fmt.Sprintf(cluster, "127.0.0.1")+"user = 'weir'\n", keys())
	wantProblems(t, err, "agent.toml: [store.cluster] user: expected WEIR_STORE_CLUSTER_PASSWORD beside a user")
	c := mustLoad(t, minimal+"[store]\nurl = 'tls://a'\ntls_ca = 'ca.pem'\n", keys())
	if want := c.Dir() + "/ca.pem"; c.Store.TLSCA != want {
		t.Errorf("tls_ca = %s, want %s", c.Store.TLSCA, want)
	}
}

// A restart must not lose a question in silence.
func TestApprovalsInMemoryWarn(t *testing.T) {
	if c := mustLoad(t, approving(""), asking()); len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "[store] backend") {
		t.Errorf("warnings: %q", c.Warnings)
	}
	if c := mustLoad(t, approving("[store]\nbackend = 'jetstream'\n"), asking()); len(c.Warnings) != 0 {
		t.Errorf("warnings with a store that stays: %q", c.Warnings)
	}
}

// DECISIONS 4: everything that an action says is part of the identity; what
// needs a restart is not.
func TestActionIdentity(t *testing.T) {
	base := string(mustLoad(t, approving(""), asking()).DeclaredActions())
	for _, text := range []string{
		"action = 'x'", "description = 'x'", "choices = ['a', 'b']", "rationale = 'none'", "token_ttl = '601s'", "max_summary = 1", "max_note = 1",
		"[actions.change.arguments]\nnote = ''", "[actions.change.hints]\nsummary = 'x'", "[actions.change.texts]\nkept = 'x'", "[actions.other]\nenabled = true",
	} {
		if got := string(mustLoad(t, approving(text+"\n"), asking()).DeclaredActions()); got == base {
			t.Errorf("%s does not change the identity", text)
		}
	}
	for _, text := range []string{"token_ttl = '10m'", "[actions.other]", "[approvals]\nmax_pending = 1", "[run]\nmax_per_user = 1", "[store]\nbackend = 'jetstream'"} {
		if got := string(mustLoad(t, approving(text+"\n"), asking()).DeclaredActions()); got != base {
			t.Errorf("%s changes the identity", text)
		}
	}
}
