// Package checkoutput gives a plugin the hook check_output: the check of the answer's text as it streams.
// A module exports the hook as soon as this package is linked, and the host
// then calls it, so only a plugin that takes part imports it.
package checkoutput

import (
	"weir/abi"
	"weir/pdk/internal/guest"
)

// usualMatches is the numbers of four matches; a piece of an answer seldom has
// more.
const usualMatches = 12

// Handle makes f the plugin's check_output. It is called once, in the plugin's init.
// An error of f is a failure of the plugin: the host logs its text, capped, and
// applies the operator's failure policy. f owns the request, which shares no
// memory with the carrier's buffers.
func Handle(f func(*abi.CheckOutputRequest) (*abi.CheckOutputReply, error)) {
	guest.Register(abi.HookCheckOutput, f, func(q *abi.CheckOutputRequest) {
		q.Matches = make([]int, 0, usualMatches)
	})
}
