package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Bounds of histograms in seconds: those of the conventions where they have
// some; runs and people take longer, guardrails less.
var (
	boundsHTTP  = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	boundsGenAI = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	boundsRun   = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}
	boundsGuard = []float64{1e-5, 2.5e-5, 1e-4, 2.5e-4, 1e-3, 2.5e-3, 0.01, 0.025, 0.1, 0.25, 1, 2.5}
	boundsHuman = []float64{1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}
	boundsToken = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

// instruments are what is counted and timed. They are made once; recording
// with none of a provider's behind them costs a call.
type instruments struct {
	meter     metric.Meter
	agentType string
	verdicts  sync.Map // verdictKey to *verdictSeries

	runs, runErrors, guards, guardErrors, pluginErrors, tools, approvals metric.Int64Counter
	runTime, guardTime, toolTime, approvalTime, firstToken               metric.Float64Histogram
	chatTime, firstChunk, mcpTime, serverTime, clientTime                metric.Float64Histogram
	tokens                                                               metric.Int64Histogram
}

func newInstruments(provider metric.MeterProvider, opts Options) *instruments {
	if provider == nil {
		provider = noop.NewMeterProvider()
	}
	m := &instruments{agentType: opts.AgentType,
		meter: provider.Meter(opts.Agent, metric.WithInstrumentationVersion(opts.Version))}
	m.ofAgent()
	m.ofConventions(opts.LatestGenAI)
	return m
}

// ofAgent makes the agent's own instruments.
func (m *instruments) ofAgent() {
	m.runs = m.counter(MetricRuns)
	m.runErrors = m.counter(MetricRunsErrors)
	m.runTime = m.timer(m.name(MetricRunsDuration), boundsRun)
	m.guards = m.counter(MetricGuardrail)
	m.guardErrors = m.counter(MetricGuardrailErrors)
	m.guardTime = m.timer(m.name(MetricGuardrailDuration), boundsGuard)
	m.pluginErrors = m.counter(MetricPluginErrors)
	m.tools = m.counter(MetricTools)
	m.toolTime = m.timer(m.name(MetricToolsDuration), boundsGenAI)
	m.approvals = m.counter(MetricApprovals)
	m.approvalTime = m.timer(m.name(MetricApprovalsDuration), boundsHuman)
	m.firstToken = m.timer(m.name(MetricFirstToken), boundsGuard)
}

// ofConventions makes those that have their names from elsewhere.
func (m *instruments) ofConventions(latestGenAI bool) {
	duration, chunk := MetricGenAIDuration, MetricGenAIFirstChunk
	if latestGenAI {
		duration, chunk = MetricGenAIDurationNext, MetricGenAIFirstChunkNext
	}
	m.chatTime = m.timer(duration, boundsGenAI)
	m.firstChunk = m.timer(chunk, boundsGenAI)
	m.mcpTime = m.timer(MetricMCPDuration, boundsGenAI)
	m.serverTime = m.timer(MetricHTTPServerDuration, boundsHTTP)
	m.clientTime = m.timer(MetricHTTPClientDuration, boundsHTTP)
	m.tokens, _ = m.meter.Int64Histogram(MetricGenAITokens, metric.WithUnit(unitTokens),
		metric.WithDescription(about(MetricGenAITokens)), metric.WithExplicitBucketBoundaries(boundsToken...))
}

func (m *instruments) name(short string) string { return AgentMetric(m.agentType, short) }

// counter makes one of the agent's counters. The API gives a working
// instrument with every error, and the names are tested.
func (m *instruments) counter(short string) metric.Int64Counter {
	c, _ := m.meter.Int64Counter(m.name(short), metric.WithUnit(unitOne), metric.WithDescription(about(short)))
	return c
}

func (m *instruments) timer(name string, bounds []float64) metric.Float64Histogram {
	h, _ := m.meter.Float64Histogram(name, metric.WithUnit(unitSeconds), metric.WithDescription(about(m.short(name))),
		metric.WithExplicitBucketBoundaries(bounds...))
	return h
}

func (m *instruments) short(name string) string {
	if prefix := m.name(""); len(name) > len(prefix) && name[:len(prefix)] == prefix {
		return name[len(prefix):]
	}
	return name
}

// with makes one set of attributes for several instruments.
func with(attrs ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attrs...))
}

// count and time bound how a context may matter to a metric: it does not, so
// that what ended because its context did still counts.
func count(c metric.Int64Counter, attrs metric.MeasurementOption) {
	c.Add(context.Background(), 1, attrs)
}

func record(h metric.Float64Histogram, took time.Duration, attrs metric.MeasurementOption) {
	h.Record(context.Background(), took.Seconds(), attrs)
}

// PluginFailed counts a call of a plugin that brought no answer: a trap, a
// time-out or another of the sandbox's codes.
func (t *Tracer) PluginFailed(plugin, hook, failure string) {
	if t == nil {
		return
	}
	count(t.metrics.pluginErrors, with(attribute.String(AttrPlugin, plugin),
		attribute.String(AttrHook, hook), attribute.String(AttrErrorType, code(failure))))
}

// Approval counts how a question to a person ended (answered, expired,
// cancelled) and how long it was open.
func (t *Tracer) Approval(outcome string, waited time.Duration) {
	if t == nil {
		return
	}
	attrs := with(attribute.String(AttrOutcome, code(outcome)))
	count(t.metrics.approvals, attrs)
	record(t.metrics.approvalTime, waited, attrs)
}

// OpenStreams has open asked, at each export, how many streams are open.
func (t *Tracer) OpenStreams(open func() int) {
	if t == nil {
		return
	}
	m := t.metrics
	_, _ = m.meter.Int64ObservableUpDownCounter(m.name(MetricStreams), metric.WithUnit(unitOne),
		metric.WithDescription(about(MetricStreams)),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(open()))
			return nil
		}))
}

// Loss is telemetry that never arrived: how many spans or log records, or how
// many exports of metrics.
type Loss struct {
	Signal string // traces, metrics, logs
	Reason string // queue_full, not_exported
	Count  int64
}

// Losses has lost asked, at each export, what was lost since the start.
func (t *Tracer) Losses(lost func() []Loss) {
	if t == nil {
		return
	}
	m := t.metrics
	_, _ = m.meter.Int64ObservableCounter(m.name(MetricLost), metric.WithUnit(unitOne),
		metric.WithDescription(about(MetricLost)),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for _, l := range lost() {
				o.Observe(l.Count, with(attribute.String(AttrSignal, l.Signal), attribute.String(AttrReason, l.Reason)))
			}
			return nil
		}))
}
