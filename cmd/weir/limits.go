package main

import (
	"fmt"
	"strings"

	"weir/abi"
	"weir/host/config"
	"weir/host/plugin"
)

// listedLimits are the limits in force, with every default filled in, as --json
// prints them. Times are of a request without a byte.
type listedLimits struct {
	Memory        int    `json:"memory_bytes"`
	Reply         int    `json:"reply_bytes"`
	CheckTimeout  int64  `json:"check_timeout_ms"`
	StepTimeout   int64  `json:"step_timeout_ms"`
	TimeoutPerKiB int64  `json:"timeout_per_kib_us"`
	SetupTimeout  int64  `json:"setup_timeout_ms"`
	Fuel          uint64 `json:"fuel"`
	Wait          int64  `json:"wait_ms"`
	Instances     int    `json:"instances"`
}

func limitsOf(l plugin.Limits) listedLimits {
	check := l.Call(abi.HookCheckInput, 0)
	return listedLimits{Memory: l.Memory, Reply: l.Reply, CheckTimeout: check.Milliseconds(),
		StepTimeout:   l.Call(abi.HookStep, 0).Milliseconds(),
		TimeoutPerKiB: (l.Call(abi.HookCheckInput, 1024) - check).Microseconds(),
		SetupTimeout:  l.Setup.Milliseconds(), Fuel: l.Fuel, Wait: l.Wait.Milliseconds(), Instances: l.Instances}
}

func (l listedLimits) String() string {
	return fmt.Sprintf("memory %s, reply %s, checks %d ms, step %d ms, + %d µs/KiB, setup %d ms, fuel %d, wait %d ms, %d instances",
		config.Size(l.Memory), config.Size(l.Reply), l.CheckTimeout, l.StepTimeout, l.TimeoutPerKiB, l.SetupTimeout, l.Fuel, l.Wait, l.Instances)
}

func joinHooks(hooks []abi.Hook) string {
	names := make([]string, len(hooks))
	for i, h := range hooks {
		names[i] = string(h)
	}
	return strings.Join(names, ", ")
}
