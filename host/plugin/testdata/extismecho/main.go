// Command extismecho answers each request with itself, by the Extism kit for
// Go. It is for benchmarks.
package main

func main() {}
