//go:build race

package pdk_test

// The race detector makes compiling a module take minutes, and nothing in a
// module or in this package's host runs concurrently.
const raceDetector = true
