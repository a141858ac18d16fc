package main

import (
	"fmt"
	"os"
	"strings"
)

// parent names the process that started this one: its id, and the time of its
// start, so that another process with a used id is another one.
func parent() string {
	id := os.Getppid()
	start := "0"
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id)); err == nil {
		start = startTime(string(stat))
	}
	return fmt.Sprintf("%d-%s", id, start)
}

// startTime is field 22 of a stat line; the name before it may hold anything.
func startTime(stat string) string {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "0"
	}
	return fields[19]
}
