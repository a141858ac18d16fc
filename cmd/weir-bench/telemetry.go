package main

// telemetryRows: whole runs with all three signals exported, and with none.
func telemetryRows() []row {
	runs := bench{pkg: "host", name: "Telemetry", time: "40x", quick: "5x"}
	return []row{
		{"telemetry", "whole runs: time with telemetry / without", runs, "x-time", 0, ratio, atMost(1.10)},
		{"telemetry-processor", "  processor time with / without", runs, "x-processor", 0, ratio, bound{}},
		{"telemetry-off", "  runs without", runs, "runs/s-off", 0, runRate, bound{}},
		{"telemetry-on", "  runs with it", runs, "runs/s-on", 0, runRate, bound{}},
	}
}
