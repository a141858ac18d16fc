//go:build race

package plugin_test

// slack widens bounds of time under the race detector, which makes the host's
// own code many times slower.
const slack = 10
