package instrument

// Taking fuel is cheap; looking whether any is left costs several times as
// much, because it is a place from which the code may be called away. So most
// charges only take, and the fuel may run below zero until the next look.
//
// Looks are at every function entry and loop head, at the first charge after a
// call, and wherever a path without one could owe more than maxDebt. Without
// the third a deep recursion could do some work in every caller as it unwinds,
// and nobody would look in between.

const maxDebt = 10_000

// debtor follows the code of one function and knows the most that can be owed
// at each point.
type debtor struct {
	frames []debtFrame
	owed   int
}

type debtFrame struct {
	loop   bool
	before int // owed where the block was opened
	end    int // owed at most by those who branch to its end
}

func (d *debtor) begin() { d.frames, d.owed = append(d.frames[:0], debtFrame{}), 0 }

// pay adds a charge and tells whether it must look.
func (d *debtor) pay(cost int, must bool) bool {
	d.owed += cost
	if must || cost > 0 && d.owed > maxDebt {
		d.owed = 0
		return true
	}
	return false
}

// after follows one instruction.
func (d *debtor) after(in *instr) {
	last := len(d.frames) - 1
	switch in.op {
	case opBlock, opLoop:
		d.frames = append(d.frames, debtFrame{in.op == opLoop, d.owed, 0})
	case opIf:
		d.frames = append(d.frames, debtFrame{false, d.owed, d.owed})
	case opElse:
		d.branch(0)
		d.owed = d.frames[last].before
	case opEnd:
		d.owed = max(d.owed, d.frames[last].end)
		d.frames = d.frames[:last]
	case opBr, opBrIf:
		d.branch(in.a)
	case opBrTable:
		for _, l := range in.labels {
			d.branch(l)
		}
	case opCall, opCallIndirect:
		d.owed = maxDebt
	}
}

// branch notes what is owed at the end of a block that is branched to. A loop
// is branched to at its head, which looks.
func (d *debtor) branch(label uint32) {
	f := &d.frames[len(d.frames)-1-int(label)]
	if !f.loop {
		f.end = max(f.end, d.owed)
	}
}
