//go:build unix && !linux

package main

import "syscall"

// attributes gives the child a group of its own.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
