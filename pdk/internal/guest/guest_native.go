//go:build !wasip1

package guest

// Log does nothing: natively there is no host.
func Log(int, string) {}
