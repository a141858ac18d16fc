package main

import "syscall"

// attributes gives the child a group of its own and, should this process be
// killed, its end by the kernel.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
