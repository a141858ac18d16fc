package benchtest

import (
	"flag"
	"runtime"
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	hundred := make(Times, 100)
	for i := range hundred {
		hundred[i] = time.Duration((i*37)%100 + 1) // 1 to 100 in another order
	}
	for _, c := range []struct {
		name  string
		times Times
		q     float64
		want  time.Duration
	}{
		{"none", nil, 0.5, 0},
		{"one", Times{7}, 0.99, 7},
		{"median of two is the lower", Times{9, 3}, 0.5, 3},
		{"median of three", Times{9, 3, 5}, 0.5, 5},
		{"median of a hundred", hundred, 0.5, 50},
		{"99 of a hundred", hundred, 0.99, 99},
		{"all", hundred, 1, 100},
		{"the least", hundred, 0, 1},
	} {
		if got := c.times.Quantile(c.q); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if hundred[0] != 1 || hundred[1] != 38 {
		t.Error("the times were put in another order")
	}
}

// One operation that was disturbed does not count, in neither of the two.
func TestRatio(t *testing.T) {
	a, b := Times{20, 22, 9000}, Times{10, 7000, 11}
	if got := Ratio(a, b); got != 2 {
		t.Errorf("ratio %v, want 2", got)
	}
	if got := Micro(1500 * time.Nanosecond); got != 1.5 {
		t.Errorf("%v µs", got)
	}
}

// An attempt that was disturbed does not count, and one within the limit is
// enough.
func TestBest(t *testing.T) {
	for _, c := range []struct {
		times    Times
		want     time.Duration
		attempts int
	}{
		{Times{3, 1}, 3, 1},
		{Times{9, 5, 1}, 5, 2},
		{Times{9, 7, 8, 1}, 7, 3},
	} {
		attempts := 0
		got := Best(3, 5, func() time.Duration { attempts++; return c.times[attempts-1] })
		if got != c.want || attempts != c.attempts {
			t.Errorf("%v: %d in %d attempts, want %d in %d", c.times, got, attempts, c.want, c.attempts)
		}
	}
}

// What is compared takes turns.
func TestInTurn(t *testing.T) {
	benchtime := flag.Lookup("test.benchtime").Value
	before := benchtime.String()
	if err := benchtime.Set("5x"); err != nil {
		t.Fatal(err)
	}
	defer benchtime.Set(before)
	order := ""
	var times []Times
	testing.Benchmark(func(b *testing.B) {
		order = ""
		times = InTurn(b, func() { order += "a" }, func() { order += "b" })
	})
	if order != "ababababab" || len(times) != 2 || len(times[0]) != 5 || len(times[1]) != 5 {
		t.Errorf("%s, %d and %d times", order, len(times[0]), len(times[1]))
	}
}

// Work shows, where the system tells.
func TestProcessor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	for begun := time.Now(); Processor() < 50*time.Millisecond; {
		if time.Since(begun) > time.Minute {
			t.Fatal("work is not counted")
		}
	}
}
