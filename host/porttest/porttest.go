// Package porttest gives tests the addresses that they have to know before
// anybody listens there, or at which nobody is to listen.
package porttest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Systems give ports from 32768 on, Linux, or 49152 to whoever does not name
// one. Below that a port that was free is not taken in the next moment by a
// connection or a listener of another test.
const (
	lowest = 10_000
	ports  = 20_000
)

// Free returns n loopback addresses, host:port, at which nobody listens.
func Free(t testing.TB, n int) (addresses []string) {
	t.Helper()
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", lowest+rand.IntN(ports)))
		if err != nil {
			continue
		}
		defer l.Close() // when all are known, so that they differ
		if addresses = append(addresses, l.Addr().String()); len(addresses) == n {
			return addresses
		}
	}
	t.Fatal("no port is free")
	return nil
}
