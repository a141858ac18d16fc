package telemetry

// GenAIConvention is the version of the OpenTelemetry GenAI conventions that
// the gen_ai names below follow. The conventions are not stable: a later
// version goes in here, as one change.
const GenAIConvention = "0.1.0"

// ScopeName names the tracer, as instrumentation scopes do.
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
	SpanGuardPrefix    = "guardrail." // a hook follows: one guard's own verdict
)

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
)

// Values of [AttrGenAIOperation] and [AttrOpenInferenceKind].
const (
	OperationChat        = "chat"
	OperationInvokeAgent = "invoke_agent"
	OperationExecuteTool = "execute_tool"
	OperationGuardCheck  = "guardrail_check"

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
)
