package main

// row is one line of the table.
type row struct {
	id     string // stable: other programs look rows up by it
	what   string
	bench  bench
	metric string  // of the benchmark, as it reports it
	per    float64 // the metric is divided by this; zero: by nothing
	unit   unit
	bound  bound
}

// table lists all rows in the order in which they are measured and printed. To
// add one, write a benchmark beside the code that it measures, let it report
// its figure by ReportMetric, and add a line here. Figures that are compared
// must come from one benchmark that takes them in turn (host/benchtest).
func table() []row {
	var rows []row
	for _, part := range [][]row{callRows(), extismRows(), stateRows(), meterRows(), hostRows(), approvalRows(), streamRows(), telemetryRows()} {
		rows = append(rows, part...)
	}
	return rows
}

// callRows: a whole call, with fuel, time limit and fresh state.
func callRows() []row {
	small := bench{pkg: "host/plugin", name: "Echo/small", time: "1s", quick: "100ms", repeat: 3}
	guest := bench{pkg: "host/plugin", name: "Echo/go", time: "1s", quick: "100ms", repeat: 3}
	return []row{
		{"echo-small", "call: echo of 1 KiB, small guest, p50", small, "p50-ns", 1e3, micros, atMost(6)},
		{"echo-small-garbage", "  garbage of one such call", small, "B/op", 0, bytesUnit, atMost(300)},
		{"echo-go", "call: echo of 1 KiB, Go guest, p50", guest, "p50-ns", 1e3, micros, atMost(20)},
		{"echo-go-garbage", "  garbage of one such call", guest, "B/op", 0, bytesUnit, atMost(300)},
	}
}

// extismRows: the same echo through Extism, ours and the SDK as it comes, whose
// reused instance keeps what the last caller left.
func extismRows() []row {
	echo := func(name string) bench {
		return bench{pkg: "host/plugin", name: "ExtismEcho/" + name, time: "300x", quick: "40x"}
	}
	return []row{
		{"extism-small", "Extism carrier: echo of 1 KiB, small guest, p50", echo("small/queued"), "p50-ns", 1e3, micros, bound{}},
		{"extism-small-sdk", "  SDK as it comes, a reused instance", echo("small/sdk-reused"), "p50-ns", 1e3, micros, bound{}},
		{"extism-small-sdk-new", "  SDK, a new instance", echo("small/sdk-new"), "p50-ns", 1e3, micros, bound{}},
		{"extism-go", "Extism carrier: echo of 1 KiB, Go guest, p50", echo("go/queued"), "p50-ns", 1e3, micros, bound{}},
		{"extism-go-sdk", "  SDK as it comes, a reused instance", echo("go/sdk-reused"), "p50-ns", 1e3, micros, bound{}},
		{"extism-go-sdk-new", "  SDK, a new instance", echo("go/sdk-new"), "p50-ns", 1e3, micros, bound{}},
	}
}

// stateRows: instances and their state.
func stateRows() []row {
	fresh := bench{pkg: "host/plugin", name: "FreshState", time: "60x", quick: "10x"}
	instance := bench{pkg: "host/plugin", name: "Instance/go", time: "400x", quick: "50x", repeat: 3}
	idle := bench{pkg: "host/plugin", name: "IdleMemory", time: "3x", quick: "1x"}
	return []row{
		{"fresh-dirty", "new Go instance with init / reset of dirty pages", fresh, "x-dirty", 0, ratio, atLeast(300)},
		{"fresh-copy", "new Go instance with init / reset by full copy", fresh, "x-copy", 0, ratio, atLeast(40)},
		{"fresh-reset", "  that reset of dirty pages, p50", fresh, "dirty-µs", 0, micros, bound{}},
		{"instance", "new Go instance from the image, p50", instance, "p50-ns", 1e6, millis, atMost(1)},
		{"instance-idle", "idle Go instance after calls, Pss", idle, "KiB-instance", 0, kibibytes, atMost(400)},
	}
}

// meterRows: what metering costs, and what it holds back.
func meterRows() []row {
	hostile := bench{pkg: "host/plugin", name: "Hostile", time: "1x"}
	work := bench{pkg: "host/plugin/instrument", name: "Metering/go/all", time: "60x", quick: "10x"}
	tight := bench{pkg: "host/plugin/instrument", name: "Metering/tight", time: "100x", quick: "20x"}
	return []row{
		{"metering-go", "metered / plain wazero, a Go guest's work", work, "x-metered", 0, ratio, atMost(1.3)},
		{"metering-go-wazero", "  WithCloseOnContextDone / plain", work, "x-close-on-done", 0, ratio, bound{}},
		{"metering-tight", "metered / plain wazero, tight loop", tight, "x-metered", 0, ratio, atMost(3)},
		{"metering-tight-wazero", "  WithCloseOnContextDone / plain", tight, "x-close-on-done", 0, ratio, bound{}},
		{"hostile-ended", "hostile guests with a limit of 100 ms, last ended", hostile, "ended-ms", 0, millis, atMost(150)},
		{"hostile-stall", "  worst stall of a 1 ms ticker, collector running", hostile, "stalled-ms", 0, millis, atMost(50)},
	}
}

// hostRows: starts and swaps of a whole host.
func hostRows() []row {
	start := bench{pkg: "host", name: "Start", time: "3x", quick: "1x"}
	swaps := bench{pkg: "host", name: "Swaps", time: "1x"}
	return []row{
		{"start-cached", "start of the host, compiled code cached", start, "cached-s", 0, seconds, atMost(0.5)},
		{"start-cached-work", "  processor time of it", start, "cached-processor-s", 0, seconds, bound{}},
		{"start-cold", "start of the host, cold", start, "cold-s", 0, seconds, atMost(8)},
		{"swap-requests", "500 swaps under load: requests", swaps, "requests", 0, requests, bound{}},
		{"swap-failed", "  that failed", swaps, "failed", 0, requests, atMost(0)},
		{"swap-mixed", "  that named not exactly one generation", swaps, "mixed", 0, requests, atMost(0)},
		{"swap-heap", "  heap at the end / after half of the swaps", swaps, "x-heap", 0, ratio, atMost(1.25)},
		{"swap-goroutines", "  goroutines at the end / after half", swaps, "x-goroutines", 0, ratio, atMost(1.25)},
	}
}

// approvalRows: runs that wait for a person, and what their log costs others.
func approvalRows() []row {
	e2e := func(name, time, quick string) bench {
		return bench{pkg: "cmd/weir-demo/internal/e2e", name: name, time: time, quick: quick}
	}
	parked := e2e("Parked", "5000x", "200x")
	resume, cost := e2e("Resume", "5x", "1x"), e2e("LogCost", "30x", "3x")
	same, other := e2e("Answer/same", "60x", "5x"), e2e("Answer/other", "60x", "5x")
	return []row{ // parked last: the disk is busy for a while with what it leaves
		{"resume", "kill -9: from ready to the next question", resume, "s-p50", 0, seconds, atMost(1)},
		{"log-cost", "runs that never wait: jetstream / memory, throughput", cost, "x-throughput", 0, ratio, atLeast(0.9)},
		{"log-runs", "  runs with jetstream", cost, "runs/s", 0, runRate, bound{}},
		{"answer-same", "answer to the next question, same replica, p50", same, "ms-p50", 0, millis, atMost(20)},
		{"answer-other", "  another replica of three, p50", other, "ms-p50", 0, millis, atMost(60)},
		{"parked", "approval that waits, with its open stream", parked, "KiB-parked", 0, kibibytes, atMost(64)},
		{"parked-unanswered", "  of 5,000, those that could not be answered", parked, "unanswered", 0, requests, atMost(0)},
	}
}

// streamRows: guards and the guarded stream.
func streamRows() []row {
	held := bench{pkg: "host/guard", name: "ProseHeld", time: "1x"}
	clean := bench{pkg: "host/guard", name: "ProseDelta", time: "50x", quick: "5x", repeat: 3}
	candidate := bench{pkg: "host/guard", name: "CandidateDelta", time: "20x", quick: "2x", repeat: 3}
	first := bench{pkg: "host/guard", name: "FirstCharacter", time: "1x"}
	set := bench{pkg: "pdk/match", name: "AgainstRegexp", time: "20x", quick: "3x"}
	screen := bench{pkg: "plugins/input-screen", name: "Screen", time: "1000x", quick: "100x", repeat: 3}
	return []row{
		{"held-mean", "held back on prose, shipped guards, mean", held, "chars-mean", 0, characters, atMost(5)},
		{"held-p99", "held back on prose, shipped guards, p99", held, "chars-p99", 0, characters, atMost(24)},
		{"first-character", "first word complete to first guarded character", first, "deltas-most", 0, deltas, atMost(1)},
		{"match", "all shipped output patterns on prose", set, "p50-MB/s", 0, megaRate, atLeast(15)},
		{"match-regexp", "  regexp for each pattern / the set", set, "x-regexp", 0, ratio, atLeast(10)},
		{"delta-clean", "shipped guards, delta of 4 characters, clean, p50", clean, "µs-p50", 0, micros, atMost(5)},
		{"delta-candidate", "  with a candidate, p50", candidate, "µs-p50", 0, micros, atMost(60)},
		{"input-screen", "input-screen on 1 KiB in Wasm, fresh state, p50", screen, "p50-µs", 0, micros, atMost(300)},
	}
}
