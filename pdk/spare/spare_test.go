package spare_test

import (
	"fmt"
	"testing"

	"weir/pdk/spare"
)

type reply struct {
	edits []int
}

// A plugin fills in configure and takes in its checks.
func ExampleOf() {
	var replies spare.Of[reply]
	replies.Fill(2, func(r *reply) { r.edits = make([]int, 0, 4) })
	for range 3 {
		r := replies.Take()
		fmt.Println(len(r.edits), cap(r.edits))
	}
	// Output:
	// 0 4
	// 0 4
	// 0 0
}

// What was taken is nobody else's, also when there is none left.
func TestTakenOnce(t *testing.T) {
	var numbers spare.Of[int]
	numbers.Fill(3, nil)
	var taken []*int
	for i := range 6 {
		n := numbers.Take()
		*n = i
		taken = append(taken, n)
	}
	for i, n := range taken {
		if *n != i {
			t.Errorf("object %d has become %d", i, *n)
		}
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	var numbers spare.Of[[8]int]
	numbers.Fill(200, nil)
	if n := testing.AllocsPerRun(100, func() { numbers.Take()[0]++ }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
