//go:build !unix

package plugin_test

import "time"

func processorTime() time.Duration { return 0 }
