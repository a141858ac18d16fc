package e2e

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/host/benchtest"
)

// BenchmarkParked keeps N runs waiting for a person, each with its client's
// stream open, in a process of their own, and then answers every one.
func BenchmarkParked(b *testing.B) {
	stdin, ask := io.Pipe()
	defer ask.Close()
	many := strconv.Itoa(b.N + 100)
	o := newOffice(b, officeSetup{setup: setup{only: []string{"react"}, config: func(c string) string {
		c = replace(b, c, "\nmax_per_user = 256 ", "\nmax_per_user = "+many+" ")
		return replace(b, c, "\n[server]\n", "\n[server]\nmax_runs = "+many+"\n")
	}}, modes: "max_pending = " + many})
	w := o.bare(b, "never#1", stdin)
	weight := func() int {
		before := w.proc.stdout.String()
		_, _ = ask.Write([]byte("\n"))
		eventually(b, func() bool { return len(w.proc.stdout.String()) > len(before) })
		n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(w.proc.stdout.String(), before)))
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	warm := w.propose(b) // what the first run costs is not what the next one does
	warm.asked(b)
	begun := weight()
	questions := make([]*question, b.N)
	lines := make([]*line, b.N)
	crowd(b.N, 32, func(i int) {
		resp, err := client.Do(w.request(b.Context(), b, user(changeQuestion)))
		if err != nil {
			return
		}
		lines[i] = listen(resp)
		questions[i], _ = lines[i].question()
	})
	open := 0
	for _, q := range questions {
		if q != nil {
			open++
		}
	}
	b.ReportMetric(float64(weight()-begun)/float64(max(open, 1)), "KiB-parked")
	var answered atomic.Int64
	crowd(b.N, 32, func(i int) {
		if questions[i] == nil {
			return
		}
		if status, _ := w.answer(b, userID, questions[i], cancelChoice); status == http.StatusNoContent {
			answered.Add(1)
		}
	})
	b.ReportMetric(float64(b.N)-float64(answered.Load()), "unanswered")
	for _, l := range append(lines, warm) {
		if l != nil {
			l.hangUp()
		}
	}
}

// crowd calls f for 0 to n-1, so many at once.
func crowd(n, at int, f func(i int)) {
	var working sync.WaitGroup
	var next atomic.Int64
	for range at {
		working.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	working.Wait()
}

// BenchmarkResume kills a host when it has taken an answer, and takes the time
// from when the next one listens to its next question.
func BenchmarkResume(b *testing.B) {
	var took benchtest.Times
	for b.Loop() {
		o := newOffice(b, officeSetup{setup: setup{only: modules}})
		first := o.doomed(b, "interaction_answered#1")
		l := first.propose(b)
		q := l.asked(b)
		first.answer(b, userID, q, q.reply())
		first.proc.wait(b, 30*time.Second)
		l.hangUp()
		second := o.open(b)
		took.Time(func() { // from here, where it has said that it listens
			if q := second.again(b, l.id).asked(b); q.kind() != "text" {
				b.Fatalf("it asks %s", q.block)
			}
		})
		second.kill(b)
	}
	b.ReportMetric(took.Median().Seconds(), "s-p50")
}

// BenchmarkLogCost asks two hosts in turn that differ in their store. Every run
// calls a tool and ends, and none of them waits for a person.
func BenchmarkLogCost(b *testing.B) {
	offices := map[string]*replica{}
	for _, backend := range []string{"memory", "jetstream"} {
		offices[backend] = newOffice(b, officeSetup{setup: setup{only: []string{"react", "output-pii"}}, store: "backend = \"" + backend + "\""}).open(b)
	}
	times := map[string]benchtest.Times{}
	round := func(backend string) {
		crowd(64, 4, func(int) { // few: a busy machine must not make guards late
			resp, err := client.Do(offices[backend].request(b.Context(), b, user("Show me the complete details and history for ticket TKT-1001.")))
			if err != nil {
				b.Error(err)
				return
			}
			if raw, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(raw), "Renee Castillo") {
				b.Errorf("%v: %s", err, raw)
			}
			_ = resp.Body.Close()
		})
	}
	for _, backend := range []string{"memory", "jetstream"} {
		round(backend)
	}
	for b.Loop() {
		for _, backend := range []string{"memory", "jetstream"} {
			t := times[backend]
			t.Time(func() { round(backend) })
			times[backend] = t
		}
	}
	b.ReportMetric(benchtest.Ratio(times["memory"], times["jetstream"]), "x-throughput")
	b.ReportMetric(64/times["jetstream"].Median().Seconds(), "runs/s")
}

// BenchmarkAnswer takes the time from sending an answer to the next question on
// the open stream, at the replica with the stream and at another one of three.
func BenchmarkAnswer(b *testing.B) {
	b.Run("same", func(b *testing.B) {
		w := newOffice(b, officeSetup{setup: setup{only: modules}}).open(b)
		answers(b, w, w)
	})
	b.Run("other", func(b *testing.B) {
		replicas := trio(b, newOffice(b, officeSetup{setup: setup{only: modules}}))
		answers(b, replicas[0], replicas[1])
	})
}

func answers(b *testing.B, asks, answers *replica) {
	var took benchtest.Times
	for b.Loop() {
		l := asks.propose(b)
		q := l.asked(b)
		took.Time(func() {
			var status atomic.Int64
			done := make(chan struct{})
			go func() {
				defer close(done)
				code, _ := answers.answer(b, userID, q, q.reply())
				status.Store(int64(code))
			}()
			q = l.asked(b)
			<-done
			if status.Load() != http.StatusNoContent {
				b.Errorf("status %d", status.Load())
			}
		})
		if code, text := asks.answer(b, userID, q, `{"response":{"type":"text","text":"__CANCEL__"}}`); code != http.StatusNoContent {
			b.Fatalf("status %d: %s", code, text)
		}
		l.rest(b)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took.Median())/1e6, "ms-p50")
	b.ReportMetric(float64(took.Quantile(0.99))/1e6, "ms-p99")
}
