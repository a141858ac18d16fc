// Package instrument rewrites WebAssembly modules so that their host keeps
// control of them: it knows what they cost, gets the processor back in short
// intervals, bounds their growth, and can read and set all of their state. It
// works on bytes, before any engine sees the module.
//
//	module ─ decode ─ check ─ bound ─ scan ─ emit ─ encode ─► Module ─► Bare
//	         section  refuse          code   meter  encode             bare
//	         entry                    region debt
//	         instr, opcode            loop   bulk, asm
//
// What is added, and where the indices of the original move:
//
//	imports     …, weir.refuel                functions behind it move up by one
//	functions   …, helpers                    refuel, and one for each bulk operation
//	globals     …, fuel (i64)
//	exports     …, __weir_fuel, __weir_global_N of each mutable numeric global
//	memory, tables                            get a maximum
//	custom sections                           are left out
//
// # What is charged
//
// A unit of fuel is one instruction of the original module; block, loop, else
// and end are none, since nothing is run for them. Bulk operations cost one
// unit more for every 16 bytes or every table element that they touch, and a
// growing memory or table the same for what is added; growing that fails costs
// the instruction only.
//
// Code is divided into regions: sets of instructions of which either all run
// or none does (region.go). A region is paid for where it starts, before
// anything of it runs. So the fuel that a call uses is exactly the number of
// instructions that it ran, the same in every run and on every machine. There
// is one exception: when a call ends with a trap, what was left of the regions
// that it was in, little more than 10,000 instructions, is paid for without
// having been run.
//
//	global.get fuel      i64.const cost      i64.sub      global.set fuel
//	global.get fuel      i64.const 0         i64.lt_s     if  call look  end
//
// The second line, the look, is not behind every charge. It stands at function
// entries, loop heads, after calls, and where a path without it could owe
// 10,000 units (debt.go). What lies between two looks is bounded, for every
// shape of code:
//
//   - no region has an instruction more than 10,000 behind its start;
//   - a call ends all regions, so nothing is paid ahead while a callee runs;
//   - bulk operations of more than 64 KiB run in pieces, with a look before each
//     (bulk.go). Bounds are checked first, so a trap still has no effect.
//
// # Refuel
//
// A look that finds less than zero calls weir.refuel, (left i64) -> (left i64).
// The host gets what is left, a number below zero, and answers with what is
// left from now on, at least zero; the difference is what it granted. So the
// host can add up exactly what it granted, and fuel used = granted − the value
// of the global, at any time. To end the guest, it panics. What is left may be
// far below zero only after memory.grow or table.grow, which happen at once
// and are paid for at once: 4,096 units for each page.
//
// # What is refused
//
// Anything that is not WebAssembly 2.0, imports that Options.Allow does not
// allow, imported memories, tables and globals, a start function, more than
// one memory, names of the host's own (so a module is rewritten once), and
// numbers above the limits in refuse.go. Whether the code is well typed is for
// the engine to say, of the rewritten module: the rewriter checks everything
// that could make an invalid module valid by what it adds.
//
// Numbers and opcodes are read strictly and written in their shortest form, so
// an engine that reads less strictly cannot see another program than the one
// that is charged for.
package instrument
