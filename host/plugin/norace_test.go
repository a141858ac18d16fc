//go:build !race

package plugin_test

const slack = 1
