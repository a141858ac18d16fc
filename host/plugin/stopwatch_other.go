//go:build !linux

package plugin

func threadNow() threadTime { return threadTime{} }
