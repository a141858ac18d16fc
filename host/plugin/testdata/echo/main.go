// Command echo is a guest whose check_input answers its request as it came. It
// shows what a call costs without any work of the guest.
package main

import (
	"weir/abi"
	"weir/pdk"
)

func init() { pdk.Describe(abi.Description{Name: "echo", Version: "1.0.0", Kind: abi.KindGuardrail}) }

func main() {}
