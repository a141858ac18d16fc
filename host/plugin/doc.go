// Package plugin loads WebAssembly modules, keeps them in their limits and
// calls their hooks. It is the direct carrier of the ABI, on wazero.
//
//	Spec ─ inspect ─ compile ─► new instance ─ describe ─ configure ─ cases ─► Plugin
//	       module.go compile.go instance.go    └────────── setup.go ──────┘
//
//	request ─ admit ─ instance ─ weir_alloc ─ copy ─ hook ─ copy ─ decode ─► reply
//	          pool.go  └──────────── call.go ─────────────┘  hook.go   │
//	                     pool or bin ◄── after the call (after.go) ◄───┘
//
// Three steps are files of their own, because they decide what a plugin may do
// to its host and to the next caller: compile.go (what of a module is compiled
// and where the code is kept), instance.go (how an instance begins) and
// after.go (what becomes of an instance once it has answered).
//
// # What holds here
//
// Every failure of a plugin is a [fault.Plugin] error with one of the codes
// below; there is no outcome of a call that passes for an answer without being
// one. An instance that did anything but answer properly is closed. Memory,
// reply size, tables, printed text and the number of instances are bounded for
// each plugin by itself. A failure closes nothing that others use.
//
// # Time and fuel
//
// No code of a module is run as it comes: instrument rewrites it so that it
// pays for what it does. A guest gets its fuel in slices and asks the host for
// the next one (meter.go), which is where the scheduler and the collector get
// in, and where a call ends whose time or fuel is used up or whose caller left.
//
// # What does not hold yet
//
// An instance keeps its memory between calls.
package plugin
