//go:build !linux

package main

import "errors"

const rootVariable = "WEIR_IMAGE_ROOT"

// Roots are entered on Linux only.
func enter(string) { panic(errors.ErrUnsupported) }
