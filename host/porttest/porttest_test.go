package porttest

import (
	"net"
	"testing"
)

// The addresses differ, and each can be had.
func TestFree(t *testing.T) {
	for _, address := range Free(t, 5) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // a second one of the same would be refused
	}
}
