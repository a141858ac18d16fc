package main

import (
	"context"
	"strings"
	"testing"

	"weir/abi"
	"weir/host/benchtest"
)

// BenchmarkScreen is a whole check of an ordinary turn of 1 KiB, in Wasm and
// with fresh state.
func BenchmarkScreen(b *testing.B) {
	p := loadWasm(b, shipped(b), abi.Prompt{Name: promptName, Text: testPrompt})
	text := strings.Repeat("My parcel has not arrived yet, and I was told to show the order number. ", 15)[:1024]
	q := abi.CheckInputRequest{Call: stamp, Text: text, History: []abi.Turn{}}
	times := benchtest.InTurn(b, func() {
		if _, _, err := p.CheckInput(context.Background(), &q); err != nil {
			b.Fatal(err)
		}
	})
	b.ReportMetric(benchtest.Micro(times[0].Median()), "p50-µs")
}
