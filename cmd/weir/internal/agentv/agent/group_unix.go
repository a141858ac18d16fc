//go:build unix

package agent

import (
	"os/exec"
	"syscall"
)

// group makes a command the head of a process group, so that what it starts can
// be ended with it.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if cmd.Cancel != nil { // made with a context
		cmd.Cancel = func() error {
			kill(cmd)
			return nil
		}
	}
}

// kill ends a command's group. One that has ended is no error.
func kill(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
