package guard_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"weir/abi"
	"weir/host/guard"
	"weir/host/guard/trial"
	"weir/host/plugin"
	"weir/host/plugin/plugintest"
)

// patient lets a loaded machine be slow: the promise says nothing of time-outs.
var patient = plugin.Limits{Timeout: 10 * time.Second}

// shippedOutput loads the shipped output guards as modules, with their shipped
// configuration, in the shipped order.
func shippedOutput(t testing.TB) []guard.Guard {
	t.Helper()
	return shippedWithin(t, patient)
}

// shippedWithin is shippedOutput with other limits.
func shippedWithin(t testing.TB, limits plugin.Limits) []guard.Guard {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles modules")
	}
	ctx := context.Background()
	rt, err := plugin.NewRuntime(ctx, plugin.RuntimeOptions{CacheDir: plugintest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close(ctx) })
	var list []guard.Guard
	for _, name := range []string{"output-secrets", "output-pii"} {
		config, err := os.ReadFile(filepath.Join(plugintest.Root(t), "plugins", name, "testdata", "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := rt.Load(ctx, plugin.Spec{Name: name, Wasm: plugintest.Build(t, "plugins/"+name), Config: config, Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		s := p.Settings()
		if len(s.Patterns) == 0 {
			t.Fatalf("%s declares no patterns", name)
		}
		list = append(list, guard.Guard{Name: name, Output: p, LookBehind: s.LookBehind, HoldBack: s.HoldBack, Patterns: s.Patterns, SendMatches: s.SendMatches})
	}
	return list
}

func chainOf(t testing.TB, guards []guard.Guard) *guard.Chain {
	t.Helper()
	c, err := guard.New(guards, guard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func corpus(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// always is a guard that the host calls with every request.
func always(list []guard.Guard) []guard.Guard {
	list = slices.Clone(list)
	for i := range list {
		list[i].Patterns = nil
	}
	return list
}

// DECISIONS 2, the promise, with the real modules and the real sink: FAULTS S1,
// S2, S3 and S7. Every line alone and all prose with a secret at its end.
func TestPromiseOfTheShippedGuards(t *testing.T) {
	chain := chainOf(t, shippedOutput(t))
	texts := strings.SplitAfter(corpus(t, "sensitive.txt"), "\n")
	texts = append(texts, corpus(t, "prose.txt")+texts[7])
	for _, text := range texts {
		p, err := trial.Prove(t.Context(), chain, text, trial.Options{Splits: 60, Random: 10})
		if err != nil {
			t.Fatal(err)
		}
		if p.Broken != nil {
			t.Errorf("%q: %+v", text, p.Broken)
		}
	}
}

// What the whole is: masked where personal data stands, cut where a secret begins.
func TestWholeOfTheShippedGuards(t *testing.T) {
	chain := chainOf(t, shippedOutput(t))
	const notice = "I can't share the rest of that response because it may contain sensitive information."
	for text, want := range map[string]string{
		"Synthetic test contact: alice.guardrail@example.com, phone +41 44 668 18 00, IBAN DE89370400440532013000.": "Synthetic test contact: <EMAIL_ADDRESS>, phone <PHONE_NUMBER>, IBAN <IBAN_CODE>.",
		"Synthetic credential for output-rail testing only: api_key=DEMOSECRET1234567890.":                          "Synthetic credential for output-rail testing only: " + notice,
		"a@b.co sk-abcdefgh_ijklmnop!": "<EMAIL_ADDRESS> " + notice,
		corpus(t, "prose.txt"):         corpus(t, "prose.txt"),
	} {
		p, err := trial.Prove(t.Context(), chain, text, trial.Options{Splits: 1, Random: 1})
		if err != nil || p.Broken != nil || p.Whole != want {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	}
}

// Calling the real modules only for candidates gives what calling them always
// gives, step by step: released, held, edited, cut.
func TestNativeEqualsCallingTheModulesAlways(t *testing.T) {
	list := shippedOutput(t)
	native, called := chainOf(t, list), chainOf(t, always(list))
	r := rand.New(rand.NewPCG(3, 1))
	spent, saved := 0, 0
	for _, text := range strings.SplitAfter(corpus(t, "sensitive.txt"), "\n") {
		for _, pieces := range [][]string{{text}, strings.Split(text, ""), trial.Random(r, text)} {
			a, b := rehearse(t, native, pieces), rehearse(t, called, pieces)
			for i := range a {
				for g := range a[i].Guards {
					x, y := &a[i].Guards[g], &b[i].Guards[g]
					if x.Calls > y.Calls {
						t.Errorf("%q: %s is called more often than always", text, x.Name)
					}
					spent, saved = spent+x.Calls, saved+y.Calls-x.Calls
					x.Calls, y.Calls = 0, 0
				}
			}
			if diff := cmp.Diff(b, a); diff != "" {
				t.Fatalf("%q: native differs from always (-always +native):\n%s", pieces, diff)
			}
		}
	}
	if spent == 0 || saved < 10*spent {
		t.Errorf("%d calls were made and %d saved", spent, saved)
	}
}

func rehearse(t testing.TB, c *guard.Chain, pieces []string) []guard.Step {
	t.Helper()
	r := c.Rehearse(guard.SessionOptions{Stamp: trial.Stamp})
	var steps []guard.Step
	for _, p := range pieces {
		step, err := r.Push(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	step, _, err := r.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return append(steps, step)
}

// Clean text costs no call of a module: streamed, at its end and displayed. (A
// time of day is a candidate for an IPv6 address, so it costs one.)
func TestCleanProseCallsNoModule(t *testing.T) {
	chain := chainOf(t, shippedOutput(t))
	clean := strings.ReplaceAll(corpus(t, "prose.txt"), ":", ".")
	for _, step := range rehearse(t, chain, strings.Split(clean, "")) {
		for _, g := range step.Guards {
			if g.Calls > 0 || g.Err != nil {
				t.Fatalf("%s: %d calls, %v", g.Name, g.Calls, g.Err)
			}
		}
	}
	spy := &verdicts{}
	s := chain.Session(guard.SessionOptions{Stamp: trial.Stamp, Observer: spy})
	s.Display(t.Context(), abi.Raw(`{"id":"TKT-1001","events":["no data","TKT-1002"]}`))
	for _, v := range spy.list {
		if v.Calls > 0 {
			t.Errorf("%s: %d calls for a display", v.Guard, v.Calls)
		}
	}
	if got := s.Display(t.Context(), abi.Raw(`{"a":"x@y.co"}`)); string(got) != `{"a":"<EMAIL_ADDRESS>"}` {
		t.Errorf("display %s", got)
	}
}

type verdicts struct{ list []guard.Verdict }

func (v *verdicts) GuardVerdict(x guard.Verdict) { v.list = append(v.list, x) }

// A plugin that knows only windows keeps the promise within its window, in Wasm
// too, whatever stands beside it.
func TestPromiseOfAWindow(t *testing.T) {
	list := shippedOutput(t)
	rt, err := plugin.NewRuntime(t.Context(), plugin.RuntimeOptions{CacheDir: plugintest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close(context.Background()) })
	p, err := rt.Load(t.Context(), plugin.Spec{Name: "windowed", Wasm: plugintest.Build(t, "pdk/testdata/windowed"),
		Config: abi.Raw(`{"word":"gültig","hold_back":7}`), Limits: patient})
	if err != nil {
		t.Fatal(err)
	}
	list = append(list, guard.Guard{Name: "windowed", Output: p, HoldBack: p.Settings().HoldBack})
	proof, err := trial.Prove(t.Context(), chainOf(t, list), "Karte 4111 1111 1111 1111 ist gültig, ungültiggültig: a@b.co gült", trial.Options{Random: 20})
	if err != nil || proof.Broken != nil || proof.Whole != "Karte <CREDIT_CARD> ist <WORD>, un<WORD><WORD>: <EMAIL_ADDRESS> gült" {
		t.Errorf("%+v, %v", proof, err)
	}
}

// FuzzShippedPromise: the real modules and the real sink, on text around what they
// look for.
func FuzzShippedPromise(f *testing.F) {
	for i, text := range strings.Split(corpus(f, "sensitive.txt"), "\n") {
		f.Add(text, uint64(i))
	}
	chain := chainOf(f, shippedOutput(f))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		if len(text) > 160 {
			text = text[:160]
		}
		p, err := trial.Prove(t.Context(), chain, text, trial.Options{Splits: 8, Random: 2, Seed: seed, Shrink: 200})
		if err != nil {
			t.Fatal(err)
		}
		if p.Broken != nil {
			t.Fatalf("%q: %+v", text, p.Broken)
		}
	})
}

// Held characters on English prose with ticket ids, dates and amounts, one
// character at a time: what the stream keeps back behind what has arrived.
func BenchmarkProseHeld(b *testing.B) {
	chain := chainOf(b, shippedOutput(b))
	pieces := strings.Split(corpus(b, "prose.txt"), "")
	var held []int
	for b.Loop() {
		held = held[:0]
		for _, step := range rehearse(b, chain, pieces)[:len(pieces)] {
			held = append(held, utf8.RuneCountInString(step.Held))
		}
	}
	sum := 0
	for _, n := range held {
		sum += n
	}
	slices.Sort(held)
	b.ReportMetric(float64(sum)/float64(len(held)), "chars-mean")
	b.ReportMetric(float64(held[len(held)*99/100]), "chars-p99")
	b.ReportMetric(float64(held[len(held)-1]), "chars-max")
}

// deltas cuts text into pieces of four characters.
func deltas(text string) []string {
	c, _ := trial.ParseChunking("4")
	return c.Cut(text)
}

// The cost of a delta of four characters of clean prose through both guards.
func BenchmarkProseDelta(b *testing.B) {
	benchmarkDelta(b, corpus(b, "prose.txt"), func(s guard.Step) bool { return true })
}

// The same where a candidate stands, so that a module is called.
func BenchmarkCandidateDelta(b *testing.B) {
	benchmarkDelta(b, strings.Repeat("Write to renee@example.com or call 415-555-0132 now. ", 30), func(s guard.Step) bool {
		return slices.ContainsFunc(s.Guards, func(g guard.GuardStep) bool { return g.Calls > 0 })
	})
}

// benchmarkDelta reports the median and the 99th percentile of the deltas that
// count, in microseconds.
func benchmarkDelta(b *testing.B, text string, counts func(guard.Step) bool) {
	chain := chainOf(b, shippedOutput(b))
	pieces := deltas(text)
	var took []time.Duration
	for b.Loop() {
		r := chain.Rehearse(guard.SessionOptions{Stamp: trial.Stamp})
		for _, p := range pieces {
			began := time.Now()
			step, err := r.Push(context.Background(), p)
			d := time.Since(began)
			if err != nil || step.Ended {
				b.Fatal(err, step)
			}
			if counts(step) {
				took = append(took, d)
			}
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "µs-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "µs-p99")
}

// Text that arrives at once takes no call longer than one that streams: a table
// of numbers, where every digit may begin a card, within half of what a check may
// take. Counted in fuel, not by a clock.
func TestShippedGuardsTakeLongPieces(t *testing.T) {
	list := shippedWithin(t, plugin.Limits{Timeout: 10 * time.Second, Fuel: 25_000_000})
	for _, unit := range []string{"1 ", "7 4 0 3 ", "12 ", "1-1 ", "12:30 ", "a@b.co, "} {
		text := strings.Repeat(unit, 32<<10/len(unit))
		for _, step := range rehearse(t, chainOf(t, list), []string{text}) {
			for _, g := range step.Guards {
				if g.Err != nil {
					t.Errorf("%q …: %v", unit, g.Err)
				}
			}
		}
	}
}
