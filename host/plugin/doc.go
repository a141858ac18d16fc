// Package plugin loads WebAssembly modules, keeps them in their limits and
// calls their hooks. The direct carrier of the ABI is on wazero, as drawn here;
// modules of Extism's kits run through the Extism SDK (extism.go).
//
//	Spec ─ inspect ─ instrument ─ compile ─► first instance ─ describe ─ configure ─ warm-up ─► image
//	       module.go  └─── compile.go ────┘  instance.go       └── setup.go ──────┘  warm.go    image.go
//
//	request ─ admit ─ instance ─ weir_alloc ─ copy ─ hook ─ copy ─ decode ─► reply
//	          pool.go  └──────────── call.go ─────────────┘  hook.go   │
//	                     pool or bin ◄── reset (after.go, reset.go) ◄──┘
//
// Compiled code depends on the module only, the image on the module, its
// configuration and its prompts. A new instance is the code with the image
// mapped as its memory (memory_linux.go) and the image's globals; it has run
// nothing of its own. Right after each call the instance is put back to the
// image, so every call begins with the same state and an idle instance holds
// nobody's data. Modules whose instances have other state (written tables,
// dropped segments, vectors or references in globals) get a new, initialised
// and configured instance for every call.
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
package plugin
