package match

import "regexp/syntax"

// live finds out from where a match is still possible at all, so that nothing
// is waited for in vain. \bfoo\b after "foo" waits for what follows; a\bb after
// "a" need not.
//
// What is possible depends on the two characters around a place, of which only
// the kinds matter: one bit for each pair. The equations are solved from below,
// so a loop that never ends in a match is not alive.
func (p *program) live() {
	const all = 1<<(kinds*kinds) - 1
	kindsOf := p.kindsRead()
	pairs := make([]uint16, len(p.insts))
	for changed := true; changed; {
		changed = false
		for pc := len(p.insts) - 1; pc >= 0; pc-- {
			in := &p.insts[pc]
			now := uint16(0)
			switch in.op {
			case opMatch:
				now = all
			case opAlt:
				now = pairs[in.out] | pairs[in.arg]
			case opLook:
				now = pairs[in.out] & pairsWith(syntax.EmptyOp(in.look))
			case opRead:
				in.ahead = kindsOf[in.set] & befores(pairs[in.out])
				for b := range kinds {
					now |= uint16(in.ahead) << (b * kinds)
				}
			}
			if now != pairs[pc] {
				pairs[pc], changed = now, true
			}
		}
	}
	p.alive = make([]uint8, len(p.insts))
	for pc := range pairs {
		p.alive[pc] = befores(pairs[pc])
	}
}

// befores returns the kinds of characters before a place that allow a match,
// with some character after it.
func befores(pairs uint16) (ks uint8) {
	for b := range kinds {
		if pairs>>(b*kinds)&(1<<kinds-1) != 0 {
			ks |= 1 << b
		}
	}
	return ks
}

// pairsWith returns the pairs of kinds between which a look-around passes.
func pairsWith(look syntax.EmptyOp) (pairs uint16) {
	for b := range kinds {
		for a := range kinds {
			if look&^looksAt(b, a) == 0 {
				pairs |= 1 << (b*kinds + a)
			}
		}
	}
	return pairs
}

// kindsRead returns for each set the kinds of its characters.
func (p *program) kindsRead() []uint8 {
	sets := make([]uint8, len(p.abc.sets))
	for i := range sets {
		for c, k := range p.abc.kind {
			if p.abc.has(uint16(i), class(c)) {
				sets[i] |= 1 << k
			}
		}
	}
	return sets
}
