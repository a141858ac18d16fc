package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir/internal/compare/stat"
	"weir/cmd/weir/internal/compare/variant"
)

// The page of variants asks nobody for anything, escapes every text, and shows
// what the tables on a terminal show.
func TestVariantPage(t *testing.T) {
	const hostile = "\x1b]0;taken\a" + hostile // a terminal would obey it
	var samples []variant.Sample
	for i := range 40 {
		s := variant.Sample{Run: hostile, User: fmt.Sprint("canary", i), Variant: variant.Base, Generation: hostile, State: variant.Completed, Ended: true,
			Kept: true, Recorded: true, Seconds: float64(i) / 10, Fuel: uint64(i) * 100_000}
		if i%2 == 1 {
			s.Variant, s.State = hostile, variant.Blocked
		}
		samples = append(samples, s)
	}
	r := variant.Compare(samples, variant.Options{Config: hostile, Variants: []variant.Declared{{Name: hostile, Share: 0.5}}, Since: time.Hour})
	r.Notes, r.Broken = append(r.Notes, hostile), append(r.Broken, hostile)
	var page, text strings.Builder
	if err := WriteVariantsHTML(&page, r); err != nil {
		t.Fatal(err)
	}
	if err := WriteVariantsText(&text, r); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"<script", "<img", "<link", "<iframe", "@import", "url(", "canary", "ZgotmplZ"} {
		if strings.Contains(page.String(), tag) {
			t.Errorf("the page has %q", tag)
		}
	}
	for _, want := range []string{"default-src 'none'", "--paper:#fff", "<svg", "polyline", "guard_fuel", "less with", "bootstrap over users", "A is the base"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, want := range []string{"−100.0 [−100.0, −100.0]", "50.0 %", "no difference shown", "not compared: "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the tables lack %q:\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "canary") || strings.ContainsAny(text.String(), "\x1b\a") {
		t.Errorf("the tables name somebody, or speak to the terminal:\n%q", text.String())
	}
}

// Numbers stand in the unit of their metric, with their signs.
func TestChange(t *testing.T) {
	for _, tt := range []struct {
		unit            string
		mean, low, high float64
		want            string
	}{
		{variant.UnitRate, 0.5, -0.25, 1, "+50.0 [−25.0, +100.0]"},
		{variant.UnitSeconds, -0.0123, -1.5, 0, "−12.3 ms [−1500.0, 0.0]"},
		{variant.UnitCount, 1.5, 0.25, 2, "+1.50 [+0.25, +2.00]"},
		{variant.UnitCount, -999, -1200.4, -3, "−999 [−1200, −3]"},
	} {
		r := variant.Row{Metric: variant.Metric{Unit: tt.unit}, Difference: stat.Gap{UsersA: 1, UsersB: 1, Mean: tt.mean, Low: tt.low, High: tt.high}}
		if got := change(r); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.unit, got, tt.want)
		}
	}
}

// The generation that most runs are of comes first.
func TestGenerations(t *testing.T) {
	if got := generations(variant.Group{Generations: map[string]int{"b": 2, "c": 7, "a": 2, "": 1}}); got != "c, a, b, –" {
		t.Errorf("%q", got)
	}
}

// A curve has its steps where the values are, and of very many values no more
// steps than can be seen, from the first value to the last.
func TestStairs(t *testing.T) {
	same := func(v float64) float64 { return v }
	if got := stairs([]float64{3, 1, 1, 2}, same, same); got != "1.0,0.0 1.0,0.2 1.0,0.2 1.0,0.5 2.0,0.5 2.0,0.8 3.0,0.8 3.0,1.0 " {
		t.Errorf("%q", got)
	}
	if got := stairs(nil, same, same); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	many := make([]float64, 100_003)
	for i := range many {
		many[i] = float64(len(many) - i)
	}
	points := strings.Fields(stairs(many, same, func(share float64) float64 { return 100_003 * share }))
	if len(points) > 2*maxRanks+1 || points[0] != "1.0,0.0" || points[len(points)-1] != "100003.0,100003.0" {
		t.Fatalf("%d points from %s to %s", len(points), points[0], points[len(points)-1])
	}
	for _, p := range points { // each value is its own rank here
		var x, y float64
		if _, err := fmt.Sscanf(p, "%f,%f", &x, &y); err != nil || y > x || x-y > 100_003/maxRanks+1 {
			t.Errorf("%s, %v", p, err)
		}
	}
}
