package instrument

// loop is a loop of the function: the region at its head, and the regions from
// which the head is reached.
type loop struct {
	head   int
	from   []int // the one in which the loop stands comes first
	again  bool  // there are branches to the head
	unsure bool  // some are conditional, or from the head's own region
}

// again notes a branch to a label, which may be a loop's.
func (p *planner) again(label uint32, sure bool) {
	f := &p.frames[len(p.frames)-1-int(label)]
	if p.cur == dead || f.op != opLoop {
		return
	}
	l := &p.loops[f.loop]
	l.again = true
	if sure && p.cur != l.head {
		l.from = append(l.from, p.cur)
	} else {
		l.unsure = true
	}
}

// maxMoved is the largest cost that is moved. Only the heads of switches are
// meant.
const maxMoved = 100

// finish says where the fuel is looked at in any case, at the entry of a
// function that does something and at the head of a loop that repeats. It moves the cost of loop heads to those who surely come there next. Compilers of languages with goto make the
// whole function one loop with a switch at its head, which every jump passes:
// charges that follow each other closely are expensive, because each waits for
// the one before.
func (p *planner) finish() {
	for i := range p.loops {
		l := &p.loops[i]
		head := &p.regions[l.head]
		head.look = l.again
		if l.unsure || head.cost > maxMoved {
			continue
		}
		for _, f := range l.from {
			p.regions[f].cost += head.cost
		}
		head.cost = 0
	}
	for _, r := range p.regions {
		p.regions[0].look = p.regions[0].look || r.cost > 0
	}
}
