package jetstream_test

import (
	"testing"
	"time"

	"weir/host/fault"
	"weir/host/store/jetstream"
)

// Readiness follows the connection: there, away, back, closed.
func TestReady(t *testing.T) {
	run := restartable(t)
	srv := run()
	s := open(t, jetstream.Options{URLs: []string{srv.Addr().String()}, Timeout: time.Second})
	if err := s.Ready(); err != nil {
		t.Errorf("with a server: %v", err)
	}
	srv.Shutdown()
	srv.WaitForShutdown()
	becomes(t, func() bool { return fault.Of(s.Ready()) == fault.Unavailable && s.Ready() != nil })
	run()
	becomes(t, func() bool { return s.Ready() == nil })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(); fault.Of(err) != fault.Unavailable {
		t.Errorf("closed: %v", err)
	}
}

// becomes waits until something outside has happened.
func becomes(t *testing.T, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Error("it never became so")
}
