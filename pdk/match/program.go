package match

import (
	"regexp/syntax"
	"unicode"
)

// opcode is what an instruction does.
type opcode uint8

const (
	opRead opcode = iota // a character of a set
	opAlt                // out, or with less priority arg
	opLook               // nothing, if what stands around is right
	opMatch
	opFail
)

// inst is one instruction.
type inst struct {
	op    opcode
	look  uint8  // opLook: syntax.EmptyOp
	ahead uint8  // opRead: kinds of characters, as bits, after which a match is still possible
	set   uint16 // opRead
	out   uint32
	arg   uint32
}

// program is a compiled expression.
type program struct {
	abc   *alphabet
	insts []inst
	start uint32
	looks syntax.EmptyOp
	alive []uint8 // by instruction: kinds, as bits, of what may stand before it for a match to be possible

	first [256]bool // bytes that a match can begin with
}

// load compiles re. What its instructions read goes to b; finish makes it whole
// once the alphabet is built.
func load(re *syntax.Regexp, b *alphabetBuilder) (*program, error) {
	if err := checkSize(re); err != nil {
		return nil, err
	}
	src, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, reason(err)
	}
	p := &program{insts: make([]inst, len(src.Inst))}
	sets := make(map[*rune]uint16)
	for i := range src.Inst {
		p.load(src, uint32(i), b, sets)
	}
	p.start = target(src, uint32(src.Start))
	if p.looks&boundary != 0 {
		b.boundary = true
	}
	return p, nil
}

// load translates one instruction. Copies of a repetition share their
// characters, so sets remembers what these came to.
func (p *program) load(prog *syntax.Prog, pc uint32, b *alphabetBuilder, sets map[*rune]uint16) {
	src, in := &prog.Inst[pc], &p.insts[pc]
	in.out = target(prog, src.Out)
	switch src.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		in.op, in.arg = opAlt, target(prog, src.Arg)
	case syntax.InstEmptyWidth:
		in.op, in.look = opLook, uint8(src.Arg)
		p.looks |= syntax.EmptyOp(src.Arg)
	case syntax.InstMatch:
		in.op = opMatch
	case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		in.set = b.add(reads(src))
	case syntax.InstRune, syntax.InstRune1:
		if len(src.Rune) == 0 {
			in.op = opFail
			return
		}
		set, ok := sets[&src.Rune[0]]
		if !ok {
			set = b.add(reads(src))
			sets[&src.Rune[0]] = set
		}
		in.set = set
	default:
		in.op = opFail // or never arrived at
	}
}

// reads returns the characters that an instruction reads, ascending.
func reads(in *syntax.Inst) []span {
	switch in.Op {
	case syntax.InstRuneAny:
		return []span{{0, unicode.MaxRune}}
	case syntax.InstRuneAnyNotNL:
		return []span{{0, '\n' - 1}, {'\n' + 1, unicode.MaxRune}}
	}
	var spans []span
	if len(in.Rune) > 1 {
		for i := 0; i < len(in.Rune); i += 2 {
			spans = append(spans, span{in.Rune[i], in.Rune[i+1]})
		}
		return merge(spans)
	}
	r := in.Rune[0]
	spans = append(spans, span{r, r})
	if syntax.Flags(in.Arg)&syntax.FoldCase != 0 && in.Op == syntax.InstRune {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			spans = append(spans, span{f, f})
		}
	}
	return merge(spans)
}

// target follows instructions that do nothing.
func target(prog *syntax.Prog, pc uint32) uint32 {
	for prog.Inst[pc].Op == syntax.InstNop || prog.Inst[pc].Op == syntax.InstCapture {
		pc = prog.Inst[pc].Out
	}
	return pc
}

// finish computes what depends on the alphabet.
func (p *program) finish(abc *alphabet) {
	p.abc = abc
	p.live()
	first := make([]bool, len(abc.kind))
	p.reach(p.start, func(in *inst) {
		for c := range first {
			first[c] = first[c] || in.op == opRead && abc.has(in.set, class(c))
		}
	})
	for c := range 0x80 {
		p.first[c] = first[abc.table[c]]
	}
	wide := false
	for i, c := range abc.ranges {
		if first[c] && (i+1 == len(abc.lows) || abc.lows[i+1] > 0x80) {
			wide = true
		}
	}
	for c := 0x80; c < 0x100; c++ {
		p.first[c] = wide
	}
}

// reach calls visit for every instruction that can follow pc without a
// character, whatever stands around.
func (p *program) reach(pc uint32, visit func(*inst)) {
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
		case opAlt:
			stack = append(stack, in.out, in.arg)
		case opLook:
			stack = append(stack, in.out)
		}
	}
}

// empty reports whether the program can match without a character.
func (p *program) empty() bool {
	found := false
	p.reach(p.start, func(in *inst) { found = found || in.op == opMatch })
	return found
}

const (
	boundary = syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
	ahead    = boundary | syntax.EmptyEndText | syntax.EmptyEndLine
)

// looksAt returns what holds between two characters, or beside one.
func looksAt(before, after kind) syntax.EmptyOp {
	looks := syntax.EmptyNoWordBoundary
	if (before == word) != (after == word) {
		looks = syntax.EmptyWordBoundary
	}
	switch before {
	case edge:
		looks |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	case newline:
		looks |= syntax.EmptyBeginLine
	}
	switch after {
	case edge:
		looks |= syntax.EmptyEndText | syntax.EmptyEndLine
	case newline:
		looks |= syntax.EmptyEndLine
	}
	return looks
}
