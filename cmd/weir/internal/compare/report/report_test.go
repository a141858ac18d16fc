package report

import (
	"context"
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir/internal/compare"
	"weir/cmd/weir/internal/compare/stat"
	"weir/cmd/weir/internal/compare/suite"
)

// hostile is a text that an agent may send.
const hostile = `</div><script>document.title="taken"</script><img src="http://203.0.113.1/x" onerror="document.title='taken'">&amp;`

func trial(pass bool, answer string, latency float64) compare.Trial {
	return compare.Trial{
		Answer: answer, Calls: []compare.Call{{Name: hostile, Arguments: map[string]any{"id": hostile}, Result: hostile}},
		Metrics: []compare.Metric{{Name: "guardrail_correct", Pass: pass, Reason: hostile}, {Name: "guardrail_false_negative", Pass: !pass, Fault: true}},
		Latency: latency, First: latency / 2, Input: map[string]any{"note": hostile}, Output: map[string]any{"blocked": true},
	}
}

// sample is a result with everything in it, all texts hostile.
func sample() *compare.Result {
	yes := true
	r := &compare.Result{
		GeneratedAt: "2026-01-02T03:04:05Z", RunID: "r", Repeat: 2, Seed: 1, Resamples: stat.Resamples,
		Broken: []string{hostile}, Notes: []string{hostile}, Differs: []compare.Differing{{Name: hostile, A: hostile, B: hostile}},
		Latency:    compare.Pair[stat.Summary]{A: stat.Summarize([]float64{0.1, 0.2}), B: stat.Summarize([]float64{0.1, 3})},
		LatencyGap: stat.Difference{Pairs: 8, Mean: 1.4, Low: 0.2, High: 2, Decided: true},
		Cases: []compare.CaseResult{
			{Suite: suite.Guardrails, ID: "C1", Question: hostile, Attack: hostile, A: []compare.Trial{trial(true, "one two three", 0.1), trial(false, hostile, 0.2)}, B: []compare.Trial{trial(false, "one four three", 3), {Broken: hostile}}},
			{Suite: suite.Guardrails, ID: "C2", Question: "same", A: []compare.Trial{trial(true, "", 0.1)}, B: []compare.Trial{trial(true, "", 0.1)}},
		},
	}
	side := func(v float64, broken int) compare.Side {
		return compare.Side{Passed: &yes, Metrics: map[string]float64{"guardrail_correct/mean": v, "guardrail_false_negative/mean": 1 - v},
			Counts: map[string]int{"guardrail_correct": 2, "guardrail_false_negative": 2}, Faults: []string{"guardrail_false_negative"}, Latency: r.Latency.A, Broken: broken}
	}
	r.Suites = []compare.SuiteResult{{Suite: suite.Guardrails, Cases: 2, SHA256: strings.Repeat("a", 64), RequiredMetric: "guardrail_correct/mean", RequiredValue: 1,
		A: side(0.5, 0), B: side(1, 1), Difference: stat.Difference{Pairs: 8, Mean: 0.5, Low: 0.1, High: 0.9, Decided: true}}}
	whole := r.Suites[0]
	whole.Suite, whole.B.Broken, whole.Passed = suite.Tools, 0, &yes
	r.Suites = append(r.Suites, whole)
	for _, p := range []*compare.Provenance{&r.Provenance.A, &r.Provenance.B} {
		*p = compare.Provenance{Name: hostile, URL: hostile, Runtime: hostile, Model: hostile, Reasons: []string{hostile}, Unchecked: []string{hostile}}
	}
	return r
}

func render(t *testing.T, r *compare.Result) string {
	t.Helper()
	var b strings.Builder
	if err := WriteHTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The page asks nobody for anything and runs nothing, whatever an agent says.
func TestSelfContained(t *testing.T) {
	page := render(t, sample())
	for _, tag := range []string{"<script", "<img", "<link", "<iframe", "<object", "<base", "<form", "@import", "url("} {
		if strings.Contains(strings.ToLower(page), tag) {
			t.Errorf("the page has %s", tag)
		}
	}
	attribute := regexp.MustCompile(`(?i)<[a-z][^>]*\s(?:src|href|srcset|action|on[a-z]+)\s*=`)
	if found := attribute.FindString(page); found != "" {
		t.Errorf("the page has %q", found)
	}
	if !strings.Contains(page, `content="default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;"`) && !strings.Contains(page, `content="default-src 'none'; style-src 'unsafe-inline'"`) {
		t.Error("the page has no policy of its own")
	}
	if n := strings.Count(page, html.EscapeString("document.title=")); n < 20 {
		t.Errorf("only %d of the hostile texts are shown", n)
	}
	for _, want := range []string{"B is better", "A is better", "incomplete", "<mark>four</mark>", "<mark>two</mark>", "Repetition 2", "differs", "the same", "1 of 2", "<polyline", "cut by an output guard"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "ZgotmplZ") {
		t.Error("the template refused a value")
	}
}

// An empty result, of a run that was given up at once, can be shown, too.
func TestEmpty(t *testing.T) {
	page := render(t, &compare.Result{Broken: []string{"given up"}, Suites: []compare.SuiteResult{{Suite: suite.Tools}}})
	if !strings.Contains(page, "given up") || !strings.Contains(page, "incomplete") || strings.Contains(page, "NaN") {
		t.Error("the reason is missing")
	}
	var b strings.Builder
	if err := WriteText(&b, &compare.Result{Broken: []string{"given up"}}); err != nil || !strings.Contains(b.String(), "broken: given up") {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// A terminal gets no control character of an agent.
func TestText(t *testing.T) {
	r := sample()
	r.Provenance.A.Name, r.Broken = "\x1b[31mred\x07\r\nnext\u202e", []string{"\x1b]0;title\x07"}
	var b strings.Builder
	if err := WriteText(&b, r); err != nil {
		t.Fatal(err)
	}
	for _, c := range b.String() {
		if c < 0x20 && c != '\n' || c == 0x7f || c == '\u202e' {
			t.Fatalf("control character %q in %q", c, b.String())
		}
	}
	for _, want := range []string{"guardrail_correct", "50.0 %", "100.0 %", "+50.0 [+10.0, +90.0]", "incomplete", "[31mred next", "whole answer"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("missing %q:\n%s", want, b.String())
		}
	}
}

func TestDiff(t *testing.T) {
	show := func(words []word) string {
		var b strings.Builder
		for _, w := range words {
			if w.Differs {
				b.WriteString("<" + w.Text + ">")
			} else {
				b.WriteString(w.Text)
			}
		}
		return b.String()
	}
	for _, tt := range [][4]string{
		{"a b c", "a b c", "a b c", "a b c"},
		{"a b c", "a x c", "a <b> c", "a <x> c"},
		{"a", "a b", "a", "a< ><b>"},
		{"", "a", "", "a"},
		{"a\nb", "a b", "a<\n>b", "a< >b"},
	} {
		if x, y := diff(tt[0], tt[1]); show(x) != tt[2] || show(y) != tt[3] {
			t.Errorf("%q, %q: %q, %q", tt[0], tt[1], show(x), show(y))
		}
	}
	long := strings.Repeat("a ", maxWords)
	if x, _ := diff(long, "b"); show(x) != long {
		t.Error("a long text is marked, or has changed")
	}
}

func FuzzDiff(f *testing.F) {
	f.Add("a b", "a c")
	f.Fuzz(func(t *testing.T, a, b string) {
		join := func(words []word) (all, common string) {
			for _, w := range words {
				all += w.Text
				if !w.Differs {
					common += w.Text
				}
			}
			return all, common
		}
		x, y := diff(a, b)
		allX, commonX := join(x)
		allY, commonY := join(y)
		if allX != a || allY != b {
			t.Error("a text has changed")
		}
		if len(x) <= maxWords && len(y) <= maxWords && a != "" && b != "" && commonX != commonY {
			t.Errorf("%q and %q are not common", commonX, commonY)
		}
	})
}

// A real browser shows the page: in a wide and in a narrow window nothing is
// wider than the window, in dark mode the page is dark, and no script has run.
func TestInBrowser(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("no Chromium on this machine: the report was not looked at in a browser")
	}
	dir := t.TempDir()
	// The page's own policy forbids scripts, so a frame around it measures.
	inner := strings.ReplaceAll(html.EscapeString(render(t, sample())), "\n", "&#10;")
	look := func(width, height, flags string) map[string]any {
		t.Helper()
		outer := `<!DOCTYPE html><title>whole</title><meta name="color-scheme" content="light dark"><body style="margin:0"><iframe id="f" style="border:0;width:` + width + `px;height:` + height + `px" srcdoc="` + inner + `"></iframe><pre id="out"></pre><script>
f.onload = () => { const d = f.contentDocument, e = d.documentElement;
for (const x of d.querySelectorAll("details")) x.open = true;
const tall = e.scrollHeight;
d.getElementById("only").click();
out.textContent = JSON.stringify({wide: e.scrollWidth, tall, title: d.title, top: document.title, cases: [...d.querySelectorAll("details.case")].filter(x => x.offsetHeight > 0).length,
  paper: getComputedStyle(d.body).backgroundColor, curves: d.querySelectorAll("polyline")[1].getBoundingClientRect().width, columns: getComputedStyle(d.querySelector(".sides")).gridTemplateColumns.split(" ").length}); };
</script>`
		file := filepath.Join(dir, "look.html")
		if err := os.WriteFile(file, []byte(outer), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		args := []string{"--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + filepath.Join(dir, "profile"), "--virtual-time-budget=3000", "--dump-dom"}
		if flags != "" {
			args = append(args, flags)
		}
		out, err := exec.CommandContext(ctx, browser, append(args, "file://"+file)...).Output()
		if err != nil {
			t.Fatalf("the browser: %v", err)
		}
		_, rest, _ := strings.Cut(string(out), `<pre id="out">`)
		text, _, _ := strings.Cut(rest, "</pre>")
		var m map[string]any
		if err := json.Unmarshal([]byte(html.UnescapeString(text)), &m); err != nil {
			t.Fatalf("the browser measured nothing: %v, %.300q", err, text)
		}
		return m
	}
	for _, tt := range []struct {
		width          string
		most, columns  float64
		flags, isPaper string
	}{
		{"1200", 1200, 2, "", "rgb(255, 255, 255)"},
		{"400", 400, 1, "", "rgb(255, 255, 255)"},
		{"1200", 1200, 2, "--blink-settings=preferredColorScheme=0", "rgb(20, 24, 28)"},
	} {
		m := look(tt.width, "800", tt.flags)
		if m["wide"].(float64) > tt.most || m["columns"] != tt.columns || m["paper"] != tt.isPaper {
			t.Errorf("%+v: measured %v", tt, m)
		}
		if m["title"] == "taken" || m["top"] != "whole" || !strings.HasPrefix(m["title"].(string), "Comparison of ") {
			t.Errorf("a script of an answer has run: %v", m)
		}
		if m["tall"].(float64) < 1000 || m["curves"].(float64) < 50 || m["cases"] != 1.0 {
			t.Errorf("something is not shown, or the filter does nothing: %v", m)
		}
	}
}
