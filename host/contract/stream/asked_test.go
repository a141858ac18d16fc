//go:build linux

package stream

import (
	"context"
	"errors"
	"net"
	"testing"
)

// A client that has left is gone for whoever asks, and not at the next round of
// the watcher. One that is there is not.
func TestAskedLooks(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	theirs, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()

	ctx, leave := context.WithCancelCause(t.Context())
	defer leave(nil)
	var w watcher // whose rounds find nothing, so that only the look does
	look, remove := w.add(ours, func() { leave(errClientGone) })
	remove()
	c := asked{ctx, look}
	if err := c.Err(); err != nil {
		t.Fatalf("the client is there: %v", err)
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Err(); err == nil || !errors.Is(context.Cause(c), errClientGone) {
		t.Errorf("the client has left: %v, because of %v", err, context.Cause(c))
	}
}
