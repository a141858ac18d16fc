//go:build unix

package main

import (
	"os"
	"syscall"
)

// end signals the whole process group of p, which may have ended already.
func end(p *os.Process, politely bool) {
	s := syscall.SIGKILL
	if politely {
		s = syscall.SIGTERM
	}
	_ = syscall.Kill(-p.Pid, s)
}
