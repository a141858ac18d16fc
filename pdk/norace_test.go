//go:build !race

package pdk_test

const raceDetector = false
