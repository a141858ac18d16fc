//go:build !unix

package agent

import "os/exec"

// group does nothing: without process groups only the command itself is ended.
func group(*exec.Cmd) {}

func kill(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = cmd.Process.Kill()
	}
}
