//go:build !linux

package main

import (
	"os"
	"strconv"
)

// parent names the process that started this one, by its id alone: a process
// that gets the id within the ten minutes that a session is kept is taken for
// it.
func parent() string { return strconv.Itoa(os.Getppid()) }
