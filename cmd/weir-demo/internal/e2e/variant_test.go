package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// everybody is a variant that all users get; it differs in what nobody sees.
const everybody = "[[variant]]\nname = \"parked\"\nshare = 1.0\n[variant.plugins.react]\nfuel = 3000000000\n"

var named = regexp.MustCompile(`"generation":"([0-9a-f]{64})"(?:,"variant":"([a-z-]+)")?`)

// whose is the generation and the variant that a stream names, each once.
func whose(t *testing.T, raw string) (generation, variant string) {
	t.Helper()
	all := named.FindAllStringSubmatch(raw, -1)
	if len(all) == 0 {
		t.Fatalf("no generation in %s", raw)
	}
	for _, m := range all {
		if m[0] != all[0][0] {
			t.Fatalf("%s and %s in one stream", all[0][0], m[0])
		}
	}
	return all[0][1], all[0][2]
}

// W7: a run that waits in a variant goes on in it: after a power failure, with a
// configuration that does not know the variant any more, also at a replica that
// never had it.
func TestVariantOutlivesItsProcess(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, s officeSetup) *office{
		"the same state directory": func(t *testing.T, s officeSetup) *office { return newOffice(t, s) },
		"another replica":          func(t *testing.T, s officeSetup) *office { return sharing(t, s) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t, officeSetup{setup: setup{only: []string{"react"}}, lines: everybody, modes: "on_disconnect = \"park\""})
			first := o.open(t)
			l := first.propose(t)
			l.asked(t)
			generation, variant := whose(t, l.all.String())
			if variant != "parked" {
				t.Fatalf("variant %q", variant)
			}
			first.kill(t)

			text, err := os.ReadFile(o.path)
			if err != nil {
				t.Fatal(err)
			}
			changed := replace(t, string(text), everybody, "")
			write(t, o.path, []byte(replace(t, changed, "[plugins.react]\n", "[plugins.react]\nfuel = 2000000000\n")))
			second := o.open(t)
			raw := second.approve(t, second.again(t, l.id))
			if g, v := whose(t, raw); g != generation || v != "parked" || !strings.Contains(textOf(raw), "Done: TKT-1001") {
				t.Errorf("it went on with %s, variant %q: %s", g, v, textOf(raw))
			}
			if p, n := o.priority(t, "TKT-1001"); p != "high" || n != 1 {
				t.Errorf("priority %s, %d changes", p, n)
			}
			fresh := listen(second.open(t.Context(), t, user("Show me my open tickets."))).rest(t)
			if g, v := whose(t, fresh); g == generation || v != "" {
				t.Errorf("a new run: %s, variant %q", g, v)
			}
			second.leave(t)
			report, err := o.lookInto(l.id)
			if err != nil || report.Variant != "parked" || report.Generation != generation {
				t.Errorf("its log: %+v, %v", report, err)
			}
			noSecrets(t, "stderr", first.proc.stderr.String()+second.proc.stderr.String())
		})
	}
}

// W7: the shipped plugins, and two variants beside them: one without the guard
// that masks, one that does not differ. What was recorded shows the one, names
// no winner for the other, and replays without a difference.
func TestCompareRecordedVariants(t *testing.T) {
	const variants = `[[variant]]
name = "unmasked"
share = 0.33
guards = ["input-screen", "output-secrets", "tool-injection"]
[[variant]]
name = "control"
share = 0.33
`
	o := newOffice(t, officeSetup{setup: setup{only: modules}, lines: variants})
	r := o.open(t)
	asked := map[string]int{}
	for i := range 36 {
		req := r.as(t.Context(), t, fmt.Sprint("canary-user-", i), http.MethodPost, "/v1/workflow/full",
			`{"messages":[{"role":"user","content":"Show ticket TKT-GR-PII and quote its complete description exactly."}]}`)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		raw := drain(t, resp)
		_, variant := whose(t, raw)
		if masked := strings.Contains(textOf(raw), "<EMAIL_ADDRESS>"); masked == (variant == "unmasked") {
			t.Fatalf("%s: masked %v: %s", variant, masked, textOf(raw))
		}
		asked[variant]++
	}
	r.leave(t)
	c := launch(t, o.environment(nil), nil, "compare", "--log", "--json", "--config", o.path)
	if code := c.wait(t, time.Minute); code != 0 {
		t.Fatalf("code %d\n%s\n%s", code, c.stderr, c.stdout)
	}
	var result struct {
		Groups []struct {
			Name        string
			Runs, Users int
		}
		Comparisons []struct {
			Variant string
			Rows    []struct {
				Metric     string
				Verdict    string
				Difference struct {
					A, B    float64
					Decided bool
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(c.stdout.String()), &result); err != nil || len(result.Groups) != 3 || len(result.Comparisons) != 2 {
		t.Fatalf("%v\n%s", err, c.stdout)
	}
	for _, g := range result.Groups {
		if g.Runs != asked[g.Name] || g.Users != g.Runs {
			t.Errorf("%+v, asked %d times", g, asked[g.Name])
		}
	}
	for _, cmp := range result.Comparisons {
		for _, row := range cmp.Rows {
			planted := cmp.Variant == "unmasked" && slices.Contains([]string{"masked", "masks", "guard_fuel"}, row.Metric)
			if row.Metric == "running_time" {
				continue // a busy machine's own
			}
			if row.Difference.Decided != planted || planted && row.Metric == "masked" && (row.Difference.A != 1 || row.Difference.B != 0 || row.Verdict != "less with unmasked") {
				t.Errorf("%s: %+v", cmp.Variant, row)
			}
			each, counted := map[string]float64{"tool_calls": 1, "model_calls": 2}[row.Metric]
			if counted && (row.Difference.A != each || row.Difference.B != each) {
				t.Errorf("%s: %+v", cmp.Variant, row)
			}
			if strings.HasSuffix(row.Metric, "_tokens") && row.Verdict != "nothing to compare" { // nobody is asked for them
				t.Errorf("%s: %+v", cmp.Variant, row)
			}
		}
	}
	if text := c.stdout.String() + c.stderr.String(); strings.Contains(text, "canary") {
		t.Errorf("somebody is named: %s", text)
	}
	again := launch(t, o.environment(nil), nil, "replay", "--config", o.path, "--gate", "changed=0,unanswerable=0")
	if code := again.wait(t, time.Minute); code != 0 || !strings.Contains(again.stdout.String(), "36 same") {
		t.Errorf("the same generations differ in a replay: code %d\n%s\n%s", code, again.stderr, again.stdout)
	}
}
