package instrument

// region is a set of instructions of one function of which either all run or
// none does (a trap apart), so their cost is paid at once, where it starts.
// start is the position of its first instruction; look says that the charge
// there must look whether fuel is left, even if the cost is zero.
type region struct {
	start int
	cost  int
	look  bool
}

const (
	// reach bounds how far behind its start a region may have instructions,
	// and with it how much work is paid for and not done yet.
	reach = 10_000

	dead = -1 // the current region after an unconditional branch
)

// frame is an open block. What stands behind its end belongs to the region in
// which it was opened, unless a branch can leave the block and bypass its end:
// lowest is the lowest frame that such a branch goes to.
type frame struct {
	op     opcode
	dead   bool // opened where nothing runs
	lowest int
	loop   int // of a live loop: its number
}

// run is a stretch of frames with one continuation: those from start up to the
// next run. Branches change the continuation of many frames at once, and a
// module must not make that cost more than reading it.
type run struct{ start, region int }

// planner divides a function into regions. It follows the code once:
//
//	code            region   why
//	A               1        entry
//	block           1
//	  B             1
//	  br_if 0       1
//	  C             2        runs only if the branch is not taken
//	  loop          2
//	    D           3        every iteration
//	    br_if 0     3
//	    E           4        only the last iteration, a branch may have left
//	  end           2
//	  F             2        runs exactly as often as C
//	end             1
//	G               1        runs exactly as often as A
//
// A call ends all regions that are open: what is paid before a call must be
// done before it, or a deep recursion could do it all at once when it returns.
type planner struct {
	regions []region
	frames  []frame
	runs    []run
	loops   []loop
	cur     int // current region, or dead
	pos     int // of the next instruction
	called  int // regions below this number began before the last call
}

// begin prepares for a function; the memory of the last one is used again.
func (p *planner) begin() {
	p.regions, p.frames, p.runs, p.loops = p.regions[:0], p.frames[:0], p.runs[:0], p.loops[:0]
	p.pos, p.called, p.cur = 0, 0, dead
	p.fresh()
	p.open(opBlock)
}

// fresh makes the next instruction the start of a new region.
func (p *planner) fresh() {
	p.regions = append(p.regions, region{start: p.pos})
	p.cur = len(p.regions) - 1
}

// split ends the current region here and goes on in a new one that runs
// exactly as often.
func (p *planner) split() {
	old := p.cur
	p.fresh()
	if top := len(p.runs) - 1; top >= 0 && p.runs[top].region == old {
		p.runs[top].region = p.cur
	}
}

// count charges the instruction before pos to the current region.
func (p *planner) count() {
	if p.cur == dead {
		return
	}
	if p.pos-p.regions[p.cur].start > reach {
		p.pos--
		p.split()
		p.pos++
	}
	p.regions[p.cur].cost++
}

func (p *planner) open(op opcode) {
	height := len(p.frames)
	p.frames = append(p.frames, frame{op, p.cur == dead, height, len(p.loops)})
	if top := len(p.runs) - 1; p.cur != dead && (top < 0 || p.runs[top].region != p.cur) {
		p.runs = append(p.runs, run{height, p.cur})
	}
	if p.cur != dead && (op == opLoop || op == opIf) {
		before := p.cur
		p.fresh()
		if op == opLoop {
			p.loops = append(p.loops, loop{head: p.cur, from: []int{before}})
		}
	}
}

// otherwise begins the second arm of an if; it is false where there is none.
func (p *planner) otherwise() bool {
	f := &p.frames[len(p.frames)-1]
	if f.op != opIf {
		return false
	}
	f.op = opElse
	if !f.dead {
		p.fresh()
	}
	return true
}

// close ends the innermost block.
func (p *planner) close() {
	height := len(p.frames) - 1
	f := p.frames[height]
	p.frames = p.frames[:height]
	if f.dead {
		p.cur = dead
		return
	}
	top := len(p.runs) - 1
	p.cur = p.runs[top].region
	if p.runs[top].start == height {
		p.runs = p.runs[:top]
	}
	if f.lowest < height {
		if height > 0 {
			p.bypass(height-1, f.lowest)
		}
		p.fresh()
	} else if p.cur < p.called || p.pos-p.regions[p.cur].start >= reach {
		p.split()
	}
}

// bypass notes at a frame that a branch leaves it for the lower frame target.
func (p *planner) bypass(height, target int) {
	p.frames[height].lowest = min(p.frames[height].lowest, target)
}

// jump is an unconditional branch; of several targets it is the outermost.
func (p *planner) jump(label int) {
	if p.cur != dead {
		p.bypass(len(p.frames)-1, len(p.frames)-1-label)
		p.cur = dead
	}
}

// jumpIf is a conditional branch. The frames that go on in the current region
// are reached exactly if the branch is not taken, like the next instruction.
// The others between here and the target are reached by other ways, too.
func (p *planner) jumpIf(label int) {
	if p.cur == dead {
		return
	}
	old, last, target := p.cur, len(p.frames)-1, len(p.frames)-1-label
	p.fresh()
	top := len(p.runs) - 1
	switch {
	case p.runs[top].region != old:
		p.bypass(last, target)
	case target < p.runs[top].start:
		start := p.runs[top].start
		p.runs[top].region = p.cur
		if start > 0 {
			p.bypass(start-1, target)
		}
	case target < last:
		p.runs = append(p.runs, run{target + 1, p.cur})
	}
}

func (p *planner) call() {
	if p.cur != dead {
		p.called = len(p.regions)
		p.split()
	}
}
