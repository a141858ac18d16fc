package telemetry_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"weir/host/telemetry"
)

// W7: every metric of a run names its variant, and so does the root span; where
// there are none neither has the attribute, so that no series begins anew.
func TestVariantIsNamed(t *testing.T) {
	for _, variant := range []string{"", "short"} {
		synctest.Test(t, func(t *testing.T) {
			tracer, read := meter(t, telemetry.Options{})
			s := start
			s.Variant = variant
			ctx, run := tracer.StartRun(t.Context(), s)
			_, chat := tracer.StartChat(ctx, telemetry.ChatStart{Model: "m", Stream: true})
			chat.FirstChunk()
			time.Sleep(time.Millisecond)
			run.Released("a")
			chat.End(telemetry.ChatEnd{})
			run.End(telemetry.StateFailed, "run")
			all := read()
			for _, name := range []string{"runs", "runs.duration", "runs.errors", "first_token_delay.duration"} {
				var sets []attribute.Set
				switch data := all["agent.t."+name].(type) {
				case metricdata.Histogram[float64]:
					for _, p := range data.DataPoints {
						sets = append(sets, p.Attributes)
					}
				case metricdata.Sum[int64]:
					for _, p := range data.DataPoints {
						sets = append(sets, p.Attributes)
					}
				}
				if len(sets) != 1 {
					t.Fatalf("%s has %d series", name, len(sets))
				}
				if got, ok := sets[0].Value(telemetry.AttrVariant); ok != (variant != "") || got.AsString() != variant {
					t.Errorf("%s of variant %q: %v", name, variant, sets[0].Encoded(attribute.DefaultEncoder()))
				}
			}
			if got := all["agent.t.tool_calls"]; got != nil {
				t.Errorf("tools: %v", got)
			}
		})
		tracer, ended := record(t, everything)
		s := start
		s.Variant = variant
		_, run := tracer.StartRun(t.Context(), s)
		run.End(telemetry.StateCompleted, "")
		found, _ := ended()[start.Name][telemetry.AttrVariant].(string)
		if found != variant {
			t.Errorf("the span of variant %q has %q", variant, found)
		}
	}
}
