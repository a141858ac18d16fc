//go:build !unix

package e2e

import "testing"

func interrupt(t testing.TB, _ *child) { t.Skip("there is no SIGTERM") }
