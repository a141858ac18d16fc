package telemetry

// Conventions that names come from, with the release that was followed. Those
// of GenAI and MCP are not stable: a later release goes in here, as one change.
const (
	ConventionHTTP          = "semconv 1.43.0"       // stable
	ConventionGenAI         = "semconv-genai 0.1.0"  // spans
	ConventionGenAIMetrics  = "semconv 1.44.0"       // metrics that backends draw; see OptInGenAI
	ConventionMCP           = "semconv 1.44.0"       // development
	ConventionOpenInference = "openinference 0.1.42" // how viewers tell kinds of spans
	ConventionContract      = "agent-service 1"      // clause 9 of the contract
	ConventionPlatform      = "platform 7"           // the platform's page, section 7
	ConventionWeir          = "weir 1"               // our own
)

// OptInGenAI is the word in OTEL_SEMCONV_STABILITY_OPT_IN that asks for the
// metric names of [ConventionGenAI] in place of [ConventionGenAIMetrics].
const OptInGenAI = "gen_ai_latest_experimental"

// ScopeName names the tracer and the logger, as instrumentation scopes do. The
// meter is named after the agent.
const ScopeName = "weir"

// Span names. A name that ends in a space is a prefix: a model or a tool
// follows it. The root span is named after the agent, see [RunStart].
const (
	SpanChat           = "chat "
	SpanExecuteTool    = "execute_tool "
	SpanGuardModelCall = "guard_model.call"
	SpanToolPolicy     = "tool.policy"
	SpanInputGuard     = "guardrail.input.self_check"
	SpanOutputGuard    = "guardrail.output.stream"
	SpanRoot           = "<name>.invoke"    // stands for the workflow step's name
	SpanMCP            = "<group>__<tool>"  // stands for the tool's step name
	SpanGuardPrefix    = "guardrail."       // a hook follows: one guard's own verdict
	SpanHTTP           = "<method> <route>" // see [Exchange]

	SpanApprovalGate    = "approval.gate"
	SpanApprovalWait    = "human_approval.wait"
	SpanApprovalExecute = "mcp.approvals.execute"
	SpanApprovalRespond = "human_approval.respond"
)

// Metrics of the agent, after "agent.<type>.". Counters have the unit "1",
// histograms "s".
const (
	MetricRuns              = "runs"
	MetricRunsDuration      = "runs.duration"
	MetricRunsErrors        = "runs.errors"
	MetricGuardrail         = "guardrail"
	MetricGuardrailDuration = "guardrail.duration"
	MetricGuardrailErrors   = "guardrail.errors"
	MetricPluginErrors      = "plugin.errors"
	MetricTools             = "tool_calls"
	MetricToolsDuration     = "tool_calls.duration"
	MetricApprovals         = "approvals"
	MetricApprovalsDuration = "approvals.duration"
	MetricStreams           = "streams"
	MetricFirstToken        = "first_token_delay.duration"
	MetricLost              = "telemetry.errors"
)

// Metrics of other conventions.
const (
	MetricGenAIDuration       = "gen_ai.client.operation.duration"
	MetricGenAITokens         = "gen_ai.client.token.usage"
	MetricGenAIFirstChunk     = "gen_ai.client.operation.time_to_first_chunk"
	MetricGenAIDurationNext   = "gen_ai.client.inference.duration"            // with [OptInGenAI]
	MetricGenAIFirstChunkNext = "gen_ai.client.inference.time_to_first_chunk" // with [OptInGenAI]
	MetricMCPDuration         = "mcp.client.operation.duration"
	MetricHTTPServerDuration  = "http.server.request.duration"
	MetricHTTPClientDuration  = "http.client.request.duration"
)

// AgentMetric returns the full name of one of the agent's own metrics. The
// type's hyphen stays.
func AgentMetric(agentType, name string) string { return "agent." + agentType + "." + name }

// Attributes of the agent-service contract.
const (
	AttrAgentRuntime    = "agent.runtime"
	AttrAgentEventType  = "agent.event_type"
	AttrExecutionState  = "agent.execution.state"
	AttrExecutionID     = "execution.id"
	AttrRequestID       = "request.id"
	AttrRequestIDSource = "request.id_source"
	AttrRoles           = "enduser.roles"
	AttrPseudonym       = "enduser.pseudonym"
	AttrGeneration      = "weir.generation"
	AttrVariant         = "weir.variant"
	AttrInputValue      = "input.value"
	AttrInputSHA256     = "input.sha256"
	AttrInputLength     = "input.length"
	AttrOutputValue     = "output.value"
	AttrErrorMessage    = "error.message"
	AttrErrorType       = "error.type"

	AttrToolName     = "tool.name"
	AttrToolOutcome  = "tool.outcome"
	AttrPolicyResult = "policy.decision"
	AttrPolicyReason = "policy.reason"
	AttrPolicyKind   = "policy.kind"

	AttrApprovalAction     = "approval.action"
	AttrApprovalResource   = "approval.resource_id"
	AttrApprovalOutcome    = "approval.outcome"
	AttrApprovalOverride   = "approval.override"
	AttrApprovalCommitted  = "approval.committed"
	AttrInteractionID      = "interaction.id"
	AttrInteractionKind    = "interaction.kind"
	AttrInteractionOutcome = "interaction.outcome"

	AttrGuardStage          = "guardrail.stage"
	AttrGuardName           = "guardrail.name"
	AttrGuardType           = "guardrail.type"
	AttrGuardFramework      = "guardrail.framework"
	AttrGuardDigest         = "guardrail.digest"
	AttrGuardMode           = "guardrail.mode"
	AttrGuardVerdict        = "guardrail.verdict"
	AttrGuardReasonCode     = "guardrail.reason_code"
	AttrGuardFuel           = "guardrail.fuel"
	AttrGuardOutcome        = "guardrail.outcome"
	AttrGuardBlocked        = "guardrail.blocked"
	AttrGuardModified       = "guardrail.modified"
	AttrGuardOversized      = "guardrail.oversized"
	AttrGuardLLMBlocked     = "guardrail.llm.blocked"
	AttrGuardFinalBlocked   = "guardrail.final.blocked"
	AttrGuardSource         = "guardrail.decision_source"
	AttrGuardMatches        = "guardrail.deterministic.matches"
	AttrGuardAllowMatches   = "guardrail.deterministic.allow_matches"
	AttrGuardOverride       = "guardrail.deterministic.allow_override_applied"
	AttrGuardUserInput      = "guardrail.user_input"
	AttrGuardInputSHA256    = "guardrail.input.sha256"
	AttrGuardInputLength    = "guardrail.input.length"
	AttrGuardOutputLength   = "guardrail.output.length"
	AttrGuardPatternIndex   = "guardrail.pattern_index"
	AttrGuardMaskedEntities = "guardrail.masked_entities"
)

// Attributes of other conventions: GenAI, MCP and OpenInference, by which
// viewers draw agents, models, tools and guardrails.
const (
	AttrGenAIOperation     = "gen_ai.operation.name"
	AttrGenAIProvider      = "gen_ai.provider.name"
	AttrGenAIAgentName     = "gen_ai.agent.name"
	AttrGenAIModel         = "gen_ai.request.model"
	AttrGenAIStream        = "gen_ai.request.stream"
	AttrGenAITemperature   = "gen_ai.request.temperature"
	AttrGenAIMaxTokens     = "gen_ai.request.max_tokens"
	AttrGenAIFinishReasons = "gen_ai.response.finish_reasons"
	AttrGenAIFirstChunk    = "gen_ai.response.time_to_first_chunk" // seconds
	AttrGenAIInputTokens   = "gen_ai.usage.input_tokens"
	AttrGenAIOutputTokens  = "gen_ai.usage.output_tokens"
	AttrGenAIToolName      = "gen_ai.tool.name"
	AttrGenAIToolType      = "gen_ai.tool.type"

	AttrMCPTool       = "mcp.tool.name"
	AttrMCPMethod     = "mcp.method" // the contract's name
	AttrMCPMethodName = "mcp.method.name"

	AttrOpenInferenceKind = "openinference.span.kind"

	AttrHTTPMethod  = "http.request.method"
	AttrHTTPStatus  = "http.response.status_code"
	AttrHTTPRoute   = "http.route"
	AttrURLScheme   = "url.scheme"
	AttrHTTPVersion = "network.protocol.version"
	AttrServer      = "server.address"
	AttrServerPort  = "server.port"

	AttrGenAITokenType = "gen_ai.token.type" // metrics only
)

// Attributes of the agent's own metrics.
const (
	AttrContract   = "contract"
	AttrState      = "state"
	AttrPlugin     = "plugin"
	AttrHook       = "hook"
	AttrStage      = "stage"
	AttrMode       = "mode"
	AttrOutcome    = "outcome"
	AttrTool       = "tool"
	AttrSignal     = "signal"
	AttrReason     = "reason"
	AttrModelAlias = "weir.model.alias"
)

// Attributes of log records, beside those that a message has of its own.
const (
	LogTraceID = "trace_id"
	LogSpanID  = "span_id"
	LogError   = "error"
)

// Values of [AttrGenAIOperation] and [AttrOpenInferenceKind].
const (
	OperationChat        = "chat"
	OperationInvokeAgent = "invoke_agent"
	OperationExecuteTool = "execute_tool"
	OperationGuardCheck  = "guardrail_check" // the contract's

	KindAgent     = "AGENT"
	KindLLM       = "LLM"
	KindTool      = "TOOL"
	KindGuardrail = "GUARDRAIL"
)

// Resource attributes.
const (
	ResourceServiceName      = "service.name"
	ResourceServiceNamespace = "service.namespace"
	ResourceServiceVersion   = "service.version"
	ResourceEnvironment      = "deployment.environment"
	ResourceAgentType        = "agent.type"
)

// Units.
const (
	unitOne        = "1"
	unitSeconds    = "s"
	unitTokens     = "{token}"
	unitCharacters = "{character}"
	unitFuel       = "{instruction}"
)

// What a [Name] names.
const (
	OfSpan      = "span"
	OfMetric    = "metric"
	OfAttribute = "attribute"
	OfLog       = "log attribute"
	OfResource  = "resource attribute"
)

// Name is one row of the table of names.
type Name struct {
	Of         string
	Name       string // of one of the agent's metrics: what follows "agent.<type>."
	Unit       string // empty: none
	Convention string // with the release
	About      string
}

// Names is the table of all names, for the documentation and its test.
func Names() []Name {
	return []Name{
		{OfSpan, SpanRoot, "", ConventionContract, "the run: named after the workflow step, for instance support-tickets-agent.invoke"},
		{OfSpan, SpanChat, "", ConventionGenAI, "one call of the agent's model; the model's name follows"},
		{OfSpan, SpanGuardModelCall, "", ConventionContract, "one model call of a guardrail"},
		{OfSpan, SpanExecuteTool, "", ConventionGenAI, "one tool call with its checks; the tool's name follows"},
		{OfSpan, SpanMCP, "", ConventionContract, "the call of the MCP server under it: group__tool"},
		{OfSpan, SpanToolPolicy, "", ConventionContract, "one decision of the host's own tool policy"},
		{OfSpan, SpanApprovalGate, "", ConventionContract, "how a proposed change ended"},
		{OfSpan, SpanApprovalWait, "", ConventionContract, "one question to a person, from when it was open to its answer or end"},
		{OfSpan, SpanApprovalExecute, "", ConventionContract, "the request that has an approved change carried out"},
		{OfSpan, SpanApprovalRespond, "", ConventionContract, "one answer that was given, in a trace of its own"},
		{OfSpan, SpanInputGuard, "", ConventionContract, "the input stage"},
		{OfSpan, SpanOutputGuard, "", ConventionContract, "the end of the output stage"},
		{OfSpan, SpanGuardPrefix, "", ConventionWeir, "one guardrail's verdict; the stage follows. Of redactions for display only those that changed something"},
		{OfSpan, SpanHTTP, "", ConventionHTTP, "one HTTP request that is not a run, named by method and route; health checks have none"},
		{OfMetric, MetricRuns, unitOne, ConventionPlatform, "runs that ended, by contract and state"},
		{OfMetric, MetricRunsDuration, unitSeconds, ConventionPlatform, "how long runs took, waiting for people not counted, by contract and state"},
		{OfMetric, MetricRunsErrors, unitOne, ConventionPlatform, "runs that failed, by contract and class"},
		{OfMetric, MetricGuardrail, unitOne, ConventionPlatform, "verdicts, by plugin, stage, mode and outcome"},
		{OfMetric, MetricGuardrailDuration, unitSeconds, ConventionPlatform, "time in a guardrail per stage of a run, its model calls not counted"},
		{OfMetric, MetricGuardrailErrors, unitOne, ConventionPlatform, "guardrails that gave no verdict, by plugin, stage and code"},
		{OfMetric, MetricPluginErrors, unitOne, ConventionPlatform, "plugin calls without an answer (trap, timeout, fuel and so on), by plugin, hook and code"},
		{OfMetric, MetricTools, unitOne, ConventionPlatform, "tool calls, by tool and outcome: ok, error, refused"},
		{OfMetric, MetricToolsDuration, unitSeconds, ConventionPlatform, "how long the tool's server took, by tool and outcome"},
		{OfMetric, MetricApprovals, unitOne, ConventionPlatform, "questions to a person that ended, by outcome: answered (with a person's Cancel, too), expired, cancelled (with its run)"},
		{OfMetric, MetricApprovalsDuration, unitSeconds, ConventionPlatform, "how long they were open"},
		{OfMetric, MetricStreams, unitOne, ConventionPlatform, "event streams that are open"},
		{OfMetric, MetricFirstToken, unitSeconds, ConventionPlatform, "from the model's first text to the first released character: what the guards add"},
		{OfMetric, MetricLost, unitOne, ConventionPlatform, "spans, log records and exports of metrics that were lost, by signal and reason"},
		{OfMetric, MetricGenAIDuration, unitSeconds, ConventionGenAIMetrics, "model calls"},
		{OfMetric, MetricGenAITokens, unitTokens, ConventionGenAIMetrics, "tokens of a model call, by gen_ai.token.type"},
		{OfMetric, MetricGenAIFirstChunk, unitSeconds, ConventionGenAIMetrics, "from the request to the first text of a streamed reply"},
		{OfMetric, MetricGenAIDurationNext, unitSeconds, ConventionGenAI, "model calls, with gen_ai_latest_experimental"},
		{OfMetric, MetricGenAIFirstChunkNext, unitSeconds, ConventionGenAI, "the same, with gen_ai_latest_experimental"},
		{OfMetric, MetricMCPDuration, unitSeconds, ConventionMCP, "calls of the MCP server"},
		{OfMetric, MetricHTTPServerDuration, unitSeconds, ConventionHTTP, "requests to the last byte of the answer, by method, route and status"},
		{OfMetric, MetricHTTPClientDuration, unitSeconds, ConventionHTTP, "requests to the model and the MCP server, to the head of the answer"},
		{OfAttribute, AttrAgentRuntime, "", ConventionContract, "root span and resource: the runtime"},
		{OfAttribute, AttrAgentEventType, "", ConventionContract, "root span: WORKFLOW_START"},
		{OfAttribute, AttrExecutionState, "", ConventionContract, "root span: completed, blocked, failed, cancelled or awaiting_approval"},
		{OfAttribute, AttrExecutionID, "", ConventionContract, "root span: the run's id"},
		{OfAttribute, AttrRequestID, "", ConventionContract, "root span: the request's id"},
		{OfAttribute, AttrRequestIDSource, "", ConventionContract, "root span: gateway or generated"},
		{OfAttribute, AttrRoles, "", ConventionContract, "root span: the caller's roles, joined by commas"},
		{OfAttribute, AttrPseudonym, "", ConventionContract, "root span: only with OTEL_TRACE_USER_ID"},
		{OfAttribute, AttrGeneration, "", ConventionWeir, "root span: the policy's generation"},
		{OfAttribute, AttrVariant, "", ConventionWeir, "root span and metrics of runs: the variant of agent.toml, or base; without variants the attribute is not there"},
		{OfAttribute, AttrInputValue, "", ConventionContract, "root span: the question, redacted, once it passed; MCP spans: redacted arguments"},
		{OfAttribute, AttrInputSHA256, "", ConventionContract, "root span: digest of a blocked question"},
		{OfAttribute, AttrInputLength, unitCharacters, ConventionContract, "root span: length of a blocked question"},
		{OfAttribute, AttrOutputValue, "", ConventionContract, "root span: the released answer; MCP spans: the redacted result"},
		{OfAttribute, AttrErrorMessage, "", ConventionContract, "root span: the class of a failure"},
		{OfAttribute, AttrErrorType, "", ConventionHTTP, "spans and metrics: a code or an HTTP status; log records: an error's kind"},
		{OfAttribute, AttrToolName, "", ConventionContract, "tool.policy: a registered tool, else \"unknown\""},
		{OfAttribute, AttrToolOutcome, "", ConventionContract, "MCP spans: ok or error"},
		{OfAttribute, AttrPolicyResult, "", ConventionContract, "tool.policy: allow, require_approval or deny"},
		{OfAttribute, AttrPolicyReason, "", ConventionContract, "tool.policy: a code"},
		{OfAttribute, AttrPolicyKind, "", ConventionContract, "tool.policy: deterministic"},
		{OfAttribute, AttrApprovalAction, "", ConventionContract, "approval.gate: the action, as the executing server calls it"},
		{OfAttribute, AttrApprovalResource, "", ConventionContract, "approval.gate: what is changed, as a person was shown it"},
		{OfAttribute, AttrApprovalOutcome, "", ConventionContract, "approval.gate: applied, refused_by_mcp, kept, cancelled, timed_out and so on; unknown: nobody can say"},
		{OfAttribute, AttrApprovalOverride, "", ConventionContract, "approval.gate: a person has chosen another state"},
		{OfAttribute, AttrApprovalCommitted, "", ConventionContract, "approval.gate: the server says that the change is applied"},
		{OfAttribute, AttrInteractionID, "", ConventionContract, "questions and answers: the question's id"},
		{OfAttribute, AttrInteractionKind, "", ConventionContract, "human_approval.wait: radio, text or binary_choice"},
		{OfAttribute, AttrInteractionOutcome, "", ConventionContract, "human_approval.wait: selected, answered, cancelled, timed_out; human_approval.respond: accepted, not_found, not_owner, gone, not_offered"},
		{OfAttribute, AttrGuardStage, "", ConventionContract, "guardrail spans: input, output, tool_call, tool_result, display"},
		{OfAttribute, AttrGuardName, "", ConventionContract, "guardrail spans: the stage's name or the plugin's"},
		{OfAttribute, AttrGuardType, "", ConventionContract, "stages: the kind of check"},
		{OfAttribute, AttrGuardFramework, "", ConventionContract, "guardrail spans: weir"},
		{OfAttribute, AttrGuardDigest, "", ConventionWeir, "verdicts: the module's digest"},
		{OfAttribute, AttrGuardMode, "", ConventionWeir, "verdicts: monitor, when it changed nothing"},
		{OfAttribute, AttrGuardVerdict, "", ConventionWeir, "verdicts: allow, block, modify, error and so on"},
		{OfAttribute, AttrGuardReasonCode, "", ConventionWeir, "verdicts: the plugin's code"},
		{OfAttribute, AttrGuardFuel, unitFuel, ConventionWeir, "verdicts: the fuel used"},
		{OfAttribute, AttrGuardOutcome, "", ConventionContract, "stages: passed, blocked, modified and so on"},
		{OfAttribute, AttrGuardBlocked, "", ConventionContract, "stages"},
		{OfAttribute, AttrGuardModified, "", ConventionContract, "output stage"},
		{OfAttribute, AttrGuardOversized, "", ConventionContract, "output stage"},
		{OfAttribute, AttrGuardLLMBlocked, "", ConventionContract, "input stage"},
		{OfAttribute, AttrGuardFinalBlocked, "", ConventionContract, "input stage"},
		{OfAttribute, AttrGuardSource, "", ConventionContract, "input stage: what decided"},
		{OfAttribute, AttrGuardMatches, "", ConventionContract, "input stage: JSON list of names"},
		{OfAttribute, AttrGuardAllowMatches, "", ConventionContract, "input stage: JSON list of names"},
		{OfAttribute, AttrGuardOverride, "", ConventionContract, "input stage"},
		{OfAttribute, AttrGuardUserInput, "", ConventionContract, "input stage: the question, redacted, once it passed"},
		{OfAttribute, AttrGuardInputSHA256, "", ConventionContract, "input stage: digest of the question"},
		{OfAttribute, AttrGuardInputLength, unitCharacters, ConventionContract, "stages: length of what came in"},
		{OfAttribute, AttrGuardOutputLength, unitCharacters, ConventionContract, "output stage: length of what went out"},
		{OfAttribute, AttrGuardPatternIndex, "", ConventionContract, "output stage: which secret pattern cut the answer"},
		{OfAttribute, AttrGuardMaskedEntities, "", ConventionContract, "output stage: JSON object of counts"},
		{OfAttribute, AttrGenAIOperation, "", ConventionGenAI, "spans and metrics: chat, invoke_agent, execute_tool; stages: guardrail_check"},
		{OfAttribute, AttrGenAIProvider, "", ConventionGenAI, "model calls: openai, the protocol's name"},
		{OfAttribute, AttrGenAIAgentName, "", ConventionGenAI, "root span: the agent's name"},
		{OfAttribute, AttrGenAIModel, "", ConventionGenAI, "model calls: as configured"},
		{OfAttribute, AttrGenAIStream, "", ConventionGenAI, "model calls: streamed"},
		{OfAttribute, AttrGenAITemperature, "", ConventionGenAI, "model calls"},
		{OfAttribute, AttrGenAIMaxTokens, unitTokens, ConventionGenAI, "model calls"},
		{OfAttribute, AttrGenAIFinishReasons, "", ConventionGenAI, "model calls: a code"},
		{OfAttribute, AttrGenAIFirstChunk, unitSeconds, ConventionGenAI, "model calls: to the first text of a streamed reply"},
		{OfAttribute, AttrGenAIInputTokens, unitTokens, ConventionGenAI, "model calls, where the provider tells"},
		{OfAttribute, AttrGenAIOutputTokens, unitTokens, ConventionGenAI, "model calls, where the provider tells"},
		{OfAttribute, AttrGenAIToolName, "", ConventionGenAI, "tool calls: a registered tool"},
		{OfAttribute, AttrGenAIToolType, "", ConventionGenAI, "tool calls: function"},
		{OfAttribute, AttrGenAITokenType, "", ConventionGenAIMetrics, "metric of tokens: input or output"},
		{OfAttribute, AttrMCPTool, "", ConventionContract, "MCP spans: the tool"},
		{OfAttribute, AttrMCPMethod, "", ConventionContract, "MCP spans: tools/call"},
		{OfAttribute, AttrMCPMethodName, "", ConventionMCP, "MCP spans and metric: tools/call"},
		{OfAttribute, AttrOpenInferenceKind, "", ConventionOpenInference, "AGENT, LLM, TOOL or GUARDRAIL"},
		{OfAttribute, AttrHTTPMethod, "", ConventionHTTP, "a known method, else _OTHER"},
		{OfAttribute, AttrHTTPRoute, "", ConventionHTTP, "a declared route; without one the attribute is not there"},
		{OfAttribute, AttrHTTPStatus, "", ConventionHTTP, "the answer's status"},
		{OfAttribute, AttrURLScheme, "", ConventionHTTP, "http"},
		{OfAttribute, AttrHTTPVersion, "", ConventionHTTP, "1.1"},
		{OfAttribute, AttrServer, "", ConventionHTTP, "metric of HTTP clients: the configured host, without path"},
		{OfAttribute, AttrServerPort, "", ConventionHTTP, "metric of HTTP clients"},
		{OfAttribute, AttrModelAlias, "", ConventionWeir, "model calls: agent or guard"},
		{OfAttribute, AttrContract, "", ConventionWeir, "metrics of runs: the wire contract"},
		{OfAttribute, AttrState, "", ConventionWeir, "metrics of runs: how they ended"},
		{OfAttribute, AttrPlugin, "", ConventionWeir, "metrics: a plugin of agent.toml"},
		{OfAttribute, AttrHook, "", ConventionWeir, "metric of plugin errors: the hook"},
		{OfAttribute, AttrStage, "", ConventionWeir, "metrics of guardrails: the stage"},
		{OfAttribute, AttrMode, "", ConventionWeir, "metrics of guardrails: enforce or monitor"},
		{OfAttribute, AttrOutcome, "", ConventionWeir, "metrics: allow, block and so on; ok, error, refused"},
		{OfAttribute, AttrTool, "", ConventionWeir, "metrics of tools: a registered tool, else _OTHER"},
		{OfAttribute, AttrSignal, "", ConventionWeir, "metric of losses: traces, metrics or logs"},
		{OfAttribute, AttrReason, "", ConventionWeir, "metric of losses: queue_full or not_exported"},
		{OfLog, LogTraceID, "", ConventionPlatform, "the trace, in the record's own field and in the text log"},
		{OfLog, LogSpanID, "", ConventionPlatform, "the span, in the record's own field and in the text log"},
		{OfLog, LogError, "", ConventionWeir, "an error's text, unless a plugin's words or a bug's may stand in it; those are on standard error only"},
		{OfResource, ResourceServiceName, "", ConventionHTTP, "OTEL_SERVICE_NAME, else the agent's name"},
		{OfResource, ResourceServiceNamespace, "", ConventionHTTP, "of OTEL_RESOURCE_ATTRIBUTES, else agents"},
		{OfResource, ResourceServiceVersion, "", ConventionHTTP, "of OTEL_RESOURCE_ATTRIBUTES, else the agent's version"},
		{OfResource, ResourceEnvironment, "", ConventionHTTP, "DEPLOYMENT_ENVIRONMENT, else local"},
		{OfResource, ResourceAgentType, "", ConventionPlatform, "of OTEL_RESOURCE_ATTRIBUTES, else [agent] type"},
	}
}

// about is the description of a metric.
func about(metric string) string {
	for _, n := range Names() {
		if n.Of == OfMetric && n.Name == metric {
			return n.About
		}
	}
	return ""
}
