package variant

// Units of metrics.
const (
	UnitRate    = "rate"  // of runs, 0 to 1
	UnitCount   = "count" // a run
	UnitSeconds = "seconds"
)

// metricMasked is known of every run whose decisions are kept.
const metricMasked = "masked"

// Metric is one thing that is compared.
type Metric struct {
	Name         string `json:"metric"`
	About        string `json:"about"`
	Unit         string `json:"unit"`
	LessIsBetter bool   `json:"less_is_better"` // whatever the policy is for
}

// measure is a metric and how a run has it; false: that is not known of the run.
type measure struct {
	Metric
	of func(*Sample) (float64, bool)
}

// metrics are all of them, in the order of reports.
func metrics() []measure {
	state := func(want string) func(*Sample) (float64, bool) {
		return func(s *Sample) (float64, bool) { return rate(s.State == want), true }
	}
	kept := func(of func(*Sample) float64) func(*Sample) (float64, bool) {
		return func(s *Sample) (float64, bool) { return of(s), s.Kept }
	}
	recorded := func(of func(*Sample) float64) func(*Sample) (float64, bool) {
		return func(s *Sample) (float64, bool) { return of(s), s.Recorded }
	}
	share := func(name, about string, of func(*Sample) bool) measure {
		return measure{Metric{Name: name, About: about, Unit: UnitRate}, kept(func(s *Sample) float64 { return rate(of(s)) })}
	}
	return []measure{
		{Metric{Name: "completed", About: "runs that came to their end", Unit: UnitRate}, state(Completed)},
		{Metric{Name: "blocked", About: "runs whose question was refused", Unit: UnitRate}, state(Blocked)},
		{Metric{"failed", "runs that failed", UnitRate, true}, state(Failed)},
		{Metric{Name: "cancelled", About: "runs whose client left", Unit: UnitRate}, state(Cancelled)},
		share("asked", "runs in which a person was asked", func(s *Sample) bool { return s.Questions > 0 }),
		share("answered", "runs in which a person answered", func(s *Sample) bool { return s.Answers > 0 }),
		share("tool_call_refused", "runs in which a guardrail refused a tool call", func(s *Sample) bool { return s.CallsRefused > 0 }),
		share("tool_result_withheld", "runs in which a guardrail withheld a tool's result", func(s *Sample) bool { return s.ResultsWithheld > 0 }),
		share(metricMasked, "runs whose answer was masked", func(s *Sample) bool { return s.Masks > 0 }),
		share("cut", "runs whose answer was cut", func(s *Sample) bool { return s.Cut }),
		{Metric{Name: "masks", About: "masks in an answer", Unit: UnitCount}, kept(func(s *Sample) float64 { return float64(s.Masks) })},
		{Metric{Name: "tool_calls", About: "tool calls that were made", Unit: UnitCount}, recorded(func(s *Sample) float64 { return float64(s.ToolCalls) })},
		{Metric{Name: "model_calls", About: "calls of the agent's model", Unit: UnitCount}, recorded(func(s *Sample) float64 { return float64(s.ModelCalls) })},
		{Metric{Name: "guard_model_calls", About: "model calls of guardrails", Unit: UnitCount}, recorded(func(s *Sample) float64 { return float64(s.GuardCalls) })},
		{Metric{Name: "input_tokens", About: "tokens that the agent's model was given", Unit: UnitCount}, func(s *Sample) (float64, bool) { return float64(s.InputTokens), s.told() }},
		{Metric{Name: "output_tokens", About: "tokens that it answered, where nothing was cut", Unit: UnitCount}, func(s *Sample) (float64, bool) { return float64(s.OutputTokens), s.told() && !s.Cut }},
		{Metric{Name: "guard_fuel", About: "instructions of guardrails", Unit: UnitCount}, kept(func(s *Sample) float64 { return float64(s.Fuel) })},
		{Metric{"running_time", "of completed runs, without waiting for people", UnitSeconds, true}, func(s *Sample) (float64, bool) { return s.Seconds, s.timed() }},
	}
}

func rate(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
