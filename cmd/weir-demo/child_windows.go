package main

import (
	"os"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return nil }

// end stops p; there is no polite way to ask here.
func end(p *os.Process, _ bool) {
	_ = p.Kill() // it may have ended, which is what we want
}
