package match

import (
	"regexp/syntax"
	"unicode"
)

// set is a set of ASCII characters.
type set [2]uint64

func (s *set) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *set) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }

// inst is one instruction, with the ASCII part of what it reads as a set.
type inst struct {
	op    syntax.InstOp
	look  syntax.EmptyOp // InstEmptyWidth
	out   uint32
	arg   uint32 // InstAlt: the branch of lower priority
	ascii set    // InstRune
	src   *syntax.Inst
}

// reads reports whether the instruction consumes r.
func (in *inst) reads(r rune) bool {
	if r < 0x80 {
		return in.ascii.has(byte(r))
	}
	return in.src.MatchRune(r)
}

// load turns a program into instructions of five kinds: InstRune, InstAlt,
// InstEmptyWidth, InstMatch and InstFail.
func load(prog *syntax.Prog) *Pattern {
	p := &Pattern{insts: make([]inst, len(prog.Inst))}
	for i := range prog.Inst {
		src := &prog.Inst[i]
		in := &p.insts[i]
		in.op, in.src, in.out = src.Op, src, target(prog, src.Out)
		switch src.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			in.op, in.arg = syntax.InstAlt, target(prog, src.Arg)
		case syntax.InstEmptyWidth:
			in.look = syntax.EmptyOp(src.Arg)
			p.looks |= in.look
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			in.op = syntax.InstRune
			for c := range byte(0x80) {
				if src.MatchRune(rune(c)) {
					in.ascii.add(c)
				}
			}
		}
	}
	p.start = target(prog, uint32(prog.Start))
	p.begin()
	return p
}

// target follows instructions that do nothing.
func target(prog *syntax.Prog, pc uint32) uint32 {
	for prog.Inst[pc].Op == syntax.InstNop || prog.Inst[pc].Op == syntax.InstCapture {
		pc = prog.Inst[pc].Out
	}
	return pc
}

// reach calls visit for every instruction that can follow pc without a
// character, whatever stands around.
func (p *Pattern) reach(pc uint32, visit func(*inst)) {
	seen := make([]bool, len(p.insts))
	for stack := []uint32{pc}; len(stack) > 0; {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		in := &p.insts[pc]
		visit(in)
		switch in.op {
		case syntax.InstAlt:
			stack = append(stack, in.out, in.arg)
		case syntax.InstEmptyWidth:
			stack = append(stack, in.out)
		}
	}
}

// begin finds the characters that a match can begin with.
func (p *Pattern) begin() {
	p.reach(p.start, func(in *inst) {
		if in.op != syntax.InstRune {
			return
		}
		p.first[0] |= in.ascii[0]
		p.first[1] |= in.ascii[1]
		p.wide = p.wide || wide(in.src)
	})
}

// wide reports whether an instruction reads a character beyond ASCII.
func wide(in *syntax.Inst) bool {
	if in.Op == syntax.InstRuneAny || in.Op == syntax.InstRuneAnyNotNL {
		return true
	}
	for _, r := range in.Rune {
		if r >= 0x80 {
			return true
		}
	}
	if len(in.Rune) != 1 || syntax.Flags(in.Arg)&syntax.FoldCase == 0 {
		return false
	}
	for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
		if r >= 0x80 {
			return true
		}
	}
	return false
}

// empty reports whether the pattern can match without a character.
func (p *Pattern) empty() bool {
	found := false
	p.reach(p.start, func(in *inst) { found = found || in.op == syntax.InstMatch })
	return found
}
