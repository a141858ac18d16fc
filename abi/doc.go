// Package abi is the promise between the weir host and the WebAssembly modules
// that carry its policy. It is version 1.
//
// # What a plugin is
//
// A plugin is a pure function. It does no I/O: it is handed one JSON message,
// answers one JSON message, and is told everything else it may know (the time,
// a random seed, the reply of a model) in the message. A guardrail is
// check(request) -> verdict; a workflow is step(state, event) -> (state, action).
//
// # The direct carrier
//
// A direct module exports
//
//	memory                        the linear memory
//	weir_abi_1 () -> ()           a marker; its name carries the version
//	weir_alloc (i32) -> i32       room for a request of that many bytes
//	<hook>     (ptr i32, len i32) -> i64     ptr << 32 | len of the reply
//
// and may import weir.log (level i32, ptr i32, len i32) and the host's own
// stateless subset of wasi_snapshot_preview1. Nothing else. The name
// weir.refuel and all names that begin with __weir_ are reserved for the host.
//
//	host                                  guest memory
//	 │  p = weir_alloc(len(request))        ┌───────────────┐
//	 │  copy request ─────────────────────► │ p … p+len     │
//	 │  r = hook(p, len)                    ├───────────────┤
//	 │  copy reply  ◄────────────────────── │ r>>32 … +r&m  │
//	 ▼                                      └───────────────┘
//
// The reply stays where it is until the next call of that instance. A reply
// that is missing, out of range, larger than the host's limit or not the
// message that the hook promises is a failure of the plugin, never an "allow".
//
// # The Extism carrier
//
// A module that imports extism:host/env is one of an Extism kit, in whichever
// language. It exports its hooks as () -> i32, takes the request from the kit's
// input and puts the reply into its output; anything but zero, or an error that
// it sets, is a failure. It needs no marker and no allocator: its version is the
// abi that it describes. Messages and rules are the same.
//
// # Hooks
//
// A plugin declares what it does by what it exports.
//
//	describe           both       what the module is; static
//	configure          both       before an instance's first call
//	check_input        guardrail  the latest user turn, before a model sees it
//	check_output       guardrail  the answer's text as it streams
//	check_tool_call    guardrail  a call that the model proposes
//	check_tool_result  guardrail  a tool's result, before the model sees it
//	step               workflow   one event of a run
//
// # A check
//
// check_input, check_tool_call and check_tool_result answer a [Verdict]: allow,
// block, or ask_model with a request and a state; then the same request comes
// again with that state and the reply, at most twice. A call may also be held
// for a person (require_approval). The first guard that blocks ends the stage;
// its message is for the user, its reason_code for the model and the record.
//
// # A guarded stream
//
// check_output sees the answer as it grows, from its own last hold_from on:
//
//	… decided │ before │ text ………………………… all that is known
//	                   │ edits … │ hold_from …… undecided: comes again
//
// It answers edits, which lie before hold_from, a hold_from, before which
// everything is decided, and perhaps a cut, which ends the answer there. With
// final nothing follows and everything is decided. The replies must depend on
// the text and the configuration alone and not on how the text was cut into
// calls: then what the client reads is what guarding the whole at once gives.
// For what people see of tools (use: display) it is given texts and answers
// edits only.
//
// # A workflow
//
// step is given an event and the state that it returned last, and answers the
// next state and an action, whose outcome is the next event:
//
//	start                 the turns and the tools of a run
//	model         ──────► model, or model_failed with a code
//	tools         ──────► tools: a result for each call, in order
//	ask           ──────► human: answered, cancelled, expired or unavailable
//	answer        ──────► the run ends with this text added
//	finish, fail  ──────► the run ends
//
// A model action with stream sends its text to the client, through the guards,
// as it comes. The host counts what is left of the budget and says so in every
// event. Bulk text need not pass through the guest: a message may name the n-th
// turn or the n-th reply or result (see [Message]).
//
// # Messages
//
// Messages are JSON objects, read strictly: names are matched exactly, unknown
// and repeated names are refused, and so is anything that is not valid Unicode
// or nested deeper than 128 levels. A member that is absent is left out and
// never null; a value that an author chooses freely, such as a state, may be.
// Every type here has a JSON Schema in schema/ and golden files in testdata/.
// Offsets are byte offsets into the UTF-8 text of the same message and lie on
// rune boundaries. Every request carries now and seed (see [Call]).
//
// Identity never enters a plugin: no user id, name, e-mail, key or token, and
// roles only where the operator granted them to that plugin.
package abi
