package guard

import (
	"context"

	"weir/abi"
)

// driver asks an output guard in the way that suits it. Called tells whether
// the plugin was, and not only the driver.
type driver interface {
	checkOutput(ctx context.Context, q *abi.CheckOutputRequest) (reply *abi.CheckOutputReply, called bool, fuel uint64, err error)
}

// drive chooses the guard's driver.
func (g *Guard) drive() error {
	return nil
}

// checkOutput asks the guard through its driver.
func (g *Guard) checkOutput(ctx context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, bool, uint64, error) {
	if g.driver != nil {
		return g.driver.checkOutput(ctx, q)
	}
	reply, fuel, err := g.Output.CheckOutput(ctx, q)
	return reply, true, fuel, err
}
