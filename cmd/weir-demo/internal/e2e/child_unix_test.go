//go:build unix

package e2e

import (
	"syscall"
	"testing"
)

func interrupt(t testing.TB, c *child) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}
