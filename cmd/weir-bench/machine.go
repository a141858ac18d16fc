package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// machine is what a figure belongs to.
type machine struct {
	cpu    string
	cores  int
	kernel string
	golang string
	load   string // before the measurements; empty where it is not known
}

func thisMachine() machine {
	m := machine{cpu: cpuModel(), cores: runtime.NumCPU(), kernel: runtime.GOOS, golang: goVersion()}
	if release := line("/proc/sys/kernel/osrelease"); release != "" {
		m.kernel = "Linux " + release
	}
	if load := strings.Fields(line("/proc/loadavg")); len(load) > 0 {
		m.load = load[0]
	}
	return m
}

func (m machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s, %s (%s)", m.cpu, m.cores, m.kernel, m.golang, runtime.GOARCH)
	if m.load != "" {
		s += ", load average " + m.load
	}
	return s
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for l := range bytes.Lines(text) {
		if name, value, ok := strings.Cut(string(l), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// goVersion is that of the toolchain that builds the benchmarks.
func goVersion() string {
	out, err := exec.Command("go", "env", "GOVERSION").Output()
	if err != nil {
		return runtime.Version()
	}
	return strings.TrimSpace(string(out))
}

func line(path string) string {
	text, _ := os.ReadFile(path)
	first, _, _ := strings.Cut(string(text), "\n")
	return first
}
