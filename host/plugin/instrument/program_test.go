package instrument

import (
	"math/rand/v2"
)

// program makes a random module that is valid and ends. Functions call only
// later ones; loops and calls stop when the global steps is used up.
type program struct {
	*rand.Rand
	funcs   []funcType
	self    int    // the function that is generated
	locals  []byte // their types
	labels  [][]byte
	code    asm
	depth   int
	size    int
	globals []byte
}

const (
	stepsGlobal = 0
	maxSteps    = 1500
	leafFuncs   = 2 // the last ones, which a table holds
	passiveData = 300
)

var programTypes = []byte{typeI32, typeI64, typeF32, typeF64, typeV128}

func newProgram(seed uint64) *program {
	p := &program{Rand: rand.New(rand.NewPCG(seed, 7)), globals: []byte{typeI32, typeI32, typeI64, typeF64, typeV128}}
	for range leafFuncs + 1 + p.IntN(4) {
		p.funcs = append(p.funcs, funcType{string(p.types(3)), string(p.types(3))})
	}
	return p
}

func (p *program) types(most int) []byte {
	var list []byte
	for range p.IntN(most + 1) {
		list = append(list, p.typ())
	}
	return list
}

func (p *program) typ() byte { return programTypes[p.IntN(len(programTypes))] }

// bytes assembles the module. Functions are exported as f0, f1, …
func (p *program) bytes() []byte {
	b := []byte("\x00asm\x01\x00\x00\x00")
	var types, funcs, exports, globals, codes []byte
	for i, f := range p.funcs {
		types = appendName(appendName(append(types, 0x60), f.params), f.results)
		funcs = appendU32(funcs, uint32(i))
		exports = appendU32(append(appendName(exports, funcName(i)), byte(KindFunc)), uint32(i))
		codes = appendSized(codes, p.function(i))
	}
	types = append(types, 0x60, 0, 2, typeI32, typeI64, 0x60, 2, typeI32, typeI64, 1, typeF64)
	for i, g := range p.globals {
		globals = append(zero(append(globals, g, 1), g), byte(opEnd))
		exports = appendU32(append(appendName(exports, "global "+funcName(i)), byte(KindGlobal)), uint32(i))
	}
	exports = append(appendName(exports, "memory"), byte(KindMemory), 0)
	exports = append(appendName(exports, "table"), byte(KindTable), 0)
	n := len(p.funcs)
	b = appendSection(b, sectionType, n+2, types)
	b = appendSection(b, sectionFunction, n, funcs)
	b = appendSection(b, sectionTable, 2, []byte{typeFuncref, 1, 6, 20, typeExternref, 0, 3})
	b = appendSection(b, sectionMemory, 1, []byte{1, 3, 6})
	b = appendSection(b, sectionGlobal, len(p.globals), globals)
	b = appendSection(b, sectionExport, n+len(p.globals)+2, exports)
	last, prev := byte(n-1), byte(n-2)
	b = appendSection(b, sectionElement, 3, []byte{
		0, byte(opI32Const), 1, byte(opEnd), 2, last, prev, // active
		1, 0, 3, prev, last, prev, // passive
		7, typeFuncref, 1, byte(opRefFunc), prev, byte(opEnd)}) // declared
	b = appendSized(append(b, sectionDataCount), []byte{2})
	b = appendSection(b, sectionCode, n, codes)
	data := append([]byte{0, byte(opI32Const), 8, byte(opEnd), 5}, "hello"...)
	data = appendSized(append(data, 1), make([]byte, passiveData))
	for i := range passiveData {
		data[len(data)-1-i] = byte(i)
	}
	return appendSection(b, sectionData, 2, data)
}

func funcName(i int) string { return string([]byte{'f', byte('0' + i)}) }

func zero(c asm, typ byte) asm {
	switch typ {
	case typeI32:
		return c.i32(0)
	case typeI64:
		return c.i64(0)
	case typeF32:
		return append(c, 0x43, 0, 0, 0, 0)
	case typeF64:
		return append(c, 0x44, 0, 0, 0, 0, 0, 0, 0, 0)
	case typeV128:
		return append(c.op(opV128Const), make([]byte, 16)...)
	}
	return append(c.op(opRefNull), typ)
}

func (p *program) function(i int) []byte {
	f := p.funcs[i]
	p.self, p.code, p.depth, p.size = i, nil, 0, 0
	p.locals = append([]byte(f.params), programTypes...)
	p.labels = [][]byte{[]byte(f.results)}
	p.code = p.code.u(opGlobalGet, stepsGlobal).i32(maxSteps).op(opI32GtU, opIf, blockEmpty)
	for _, t := range []byte(f.results) {
		p.code = zero(p.code, t)
	}
	p.code = p.code.op(opReturn, opEnd)
	p.step()
	p.statements(1 + p.IntN(8))
	for _, t := range []byte(f.results) {
		p.value(t)
	}
	code := p.code.op(opEnd)
	groups := p.locals[len(f.params):]
	b := appendU32(nil, uint32(len(groups)))
	for _, t := range groups {
		b = append(b, 1, t)
	}
	return append(b, code...)
}

func (p *program) step() {
	p.code = p.code.u(opGlobalGet, stepsGlobal).i32(1).op(opI32Add).u(opGlobalSet, stepsGlobal)
}

func (p *program) statements(n int) {
	for range n {
		p.statement()
	}
}

func (p *program) statement() {
	p.size++
	simple := []func(){p.setLocal, p.setLocal, p.setGlobal, p.store, p.store, p.drop, p.bulkMemory, p.bulkTable, p.branchIf, p.call, p.rare}
	nested := []func(){p.block, p.block, p.ifElse, p.ifElse, p.loop, p.loop, p.multi, p.table}
	if p.depth < 5 && p.size < 150 && p.IntN(3) == 0 {
		p.depth++
		nested[p.IntN(len(nested))]()
		p.depth--
		return
	}
	simple[p.IntN(len(simple))]()
}

func (p *program) inside(label []byte, n int) {
	p.labels = append(p.labels, label)
	p.statements(n)
	p.labels = p.labels[:len(p.labels)-1]
}

func (p *program) block() {
	t := p.typ()
	p.code = p.code.op(opBlock, opcode(t))
	p.inside([]byte{t}, 1+p.IntN(4))
	p.value(t)
	p.code = p.code.op(opEnd, 0x1a)
}

func (p *program) ifElse() {
	p.value(typeI32)
	p.code = p.code.op(opIf, blockEmpty)
	p.inside(nil, p.IntN(4))
	if p.IntN(2) == 0 {
		p.code = p.code.op(opElse)
		p.inside(nil, p.IntN(4))
	}
	p.code = p.code.op(opEnd)
}

// loop counts in a local of its own and leaves when the steps are used up.
func (p *program) loop() {
	counter := uint32(len(p.locals))
	p.locals = append(p.locals, typeI32)
	p.code = p.code.i32(0).set(counter).op(opBlock, blockEmpty, opLoop, blockEmpty)
	p.labels = append(p.labels, nil)
	p.step()
	p.code = p.code.get(counter).i32(1).op(opI32Add).u(opLocalTee, counter).i32(int32(1 + p.IntN(6))).op(opI32GtU)
	p.code = p.code.u(opGlobalGet, stepsGlobal).i32(maxSteps).op(opI32GtU, 0x72).u(opBrIf, 1) // or
	p.inside(nil, 1+p.IntN(4))
	if p.IntN(2) == 0 {
		p.value(typeI32)
		p.code = p.code.u(opBrIf, 0)
	} else if p.IntN(2) == 0 {
		p.code = p.code.u(opBr, 0)
	}
	p.labels = p.labels[:len(p.labels)-1]
	p.code = p.code.op(opEnd, opEnd)
}

// multi is a block with parameters and results.
func (p *program) multi() {
	p.value(typeI32)
	p.value(typeI64)
	p.code = appendSigned(p.code.op(opBlock), int64(len(p.funcs)+1))
	p.code = p.code.op(0x1a, 0x1a)
	p.inside([]byte{typeF64}, p.IntN(3))
	p.value(typeF64)
	p.code = p.code.op(opEnd, 0x1a)
	p.code = appendSigned(p.code.op(opBlock), int64(len(p.funcs)))
	p.inside([]byte{typeI32, typeI64}, p.IntN(3))
	p.value(typeI32)
	p.value(typeI64)
	p.code = p.code.op(opEnd, 0x1a, 0x1a)
}

// table is a br_table out of nested blocks.
func (p *program) table() {
	n := 1 + p.IntN(4)
	for range n {
		p.code = p.code.op(opBlock, blockEmpty)
	}
	p.value(typeI32)
	if p.IntN(2) == 0 {
		p.code = p.code.i32(7).op(0x71) // and
	}
	p.code = appendU32(p.code.op(opBrTable), uint32(n-1))
	for i := range n {
		p.code = appendU32(p.code, uint32((i+p.IntN(2))%n))
	}
	for i := range n {
		p.code = p.code.op(opEnd)
		for range n - 1 - i {
			p.labels = append(p.labels, nil)
		}
		p.statements(p.IntN(3))
		p.labels = p.labels[:len(p.labels)-(n-1-i)]
	}
}

func (p *program) setLocal() {
	i := p.IntN(min(len(p.locals), len(p.funcs[p.self].params)+len(programTypes)))
	p.value(p.locals[i])
	p.code = p.code.set(uint32(i))
}

func (p *program) setGlobal() {
	i := 1 + p.IntN(len(p.globals)-1)
	p.value(p.globals[i])
	p.code = p.code.u(opGlobalSet, uint32(i))
}

func (p *program) drop() {
	p.value(p.typ())
	p.code = p.code.op(0x1a)
}

// address pushes an address that is nearly always inside the memory.
func (p *program) address() {
	p.value(typeI32)
	if p.IntN(60) > 0 {
		p.code = p.code.i32(0x1ffff).op(0x71) // and
	}
}

func (p *program) store() {
	stores := []struct {
		op  opcode
		typ byte
	}{{0x36, typeI32}, {0x37, typeI64}, {0x38, typeF32}, {0x39, typeF64}, {0x3a, typeI32}, {0x3d, typeI64}, {0xfd0b, typeV128}}
	s := stores[p.IntN(len(stores))]
	p.address()
	p.value(s.typ)
	p.code = append(p.code.op(s.op), 0, byte(p.IntN(64)))
}

// amount pushes a length; one in a few is longer than a piece.
func (p *program) amount() {
	lengths := []int32{0, 1, 15, 16, 100, 299, 4096, 65535, 65536, 65537, 100_000, 131_073, 190_000}
	if p.IntN(10) == 0 {
		p.value(typeI32)
		return
	}
	p.code = p.code.i32(lengths[p.IntN(len(lengths))])
}

func (p *program) bulkMemory() {
	switch p.IntN(5) {
	case 0:
		p.address()
		p.value(typeI32)
		p.amount()
		p.code = p.code.op(opMemoryFill, 0)
	case 1, 2:
		p.address()
		p.address()
		p.amount()
		p.code = p.code.op(opMemoryCopy, 0, 0)
	case 3:
		p.address()
		p.code = p.code.i32(p.Int32N(280)).i32(p.Int32N(25))
		p.code = p.code.u(opMemoryInit, 1).op(0)
	case 4:
		p.code = p.code.i32(p.Int32N(3)).op(opMemoryGrow, 0, 0x1a)
	}
}

func (p *program) bulkTable() {
	small := func() { p.code = p.code.i32(p.Int32N(6)) }
	switch p.IntN(6) {
	case 0:
		small()
		p.code = p.code.u(opRefFunc, uint32(len(p.funcs)-2))
		small()
		p.code = p.code.u(opTableFill, 0)
	case 1:
		small()
		small()
		small()
		p.code = append(p.code.op(opTableCopy), 0, 0)
	case 2:
		small()
		small()
		p.code = p.code.i32(p.Int32N(3))
		p.code = append(p.code.op(opTableInit), 1, 0)
	case 3:
		p.code = append(p.code.op(opRefNull), typeFuncref)
		p.code = p.code.i32(p.Int32N(4)).u(opTableGrow, 0).op(0x1a)
	case 4:
		p.code = append(p.code.op(opRefNull), typeExternref)
		p.code = p.code.i32(p.Int32N(4)).u(opTableGrow, 1).op(0x1a)
	case 5:
		small()
		p.code = append(p.code.op(opRefNull), typeFuncref)
		p.code = p.code.u(opTableSet, 0)
	}
}

func (p *program) branchIf() {
	l := p.IntN(len(p.labels))
	label := p.labels[len(p.labels)-1-l]
	for _, t := range label {
		p.value(t)
	}
	p.value(typeI32)
	if p.IntN(2) == 0 {
		p.code = p.code.i32(3).op(0x71, opI32Eqz) // rarely taken
	}
	p.code = p.code.u(opBrIf, uint32(l))
	for range label {
		p.code = p.code.op(0x1a)
	}
}

// rare leaves the rest of a block dead.
func (p *program) rare() {
	switch p.IntN(12) {
	case 0:
		p.value(typeI32)
		p.code = p.code.op(opIf, blockEmpty, opUnreachable, opEnd)
	case 1, 2:
		l := p.IntN(len(p.labels))
		for _, t := range p.labels[len(p.labels)-1-l] {
			p.value(t)
		}
		p.code = p.code.u(opBr, uint32(l))
	case 3:
		p.code = p.code.u(opDataDrop, uint32(p.IntN(2)))
	case 4:
		p.code = p.code.u(opElemDrop, uint32(p.IntN(2)))
	case 5:
		for _, t := range []byte(p.funcs[p.self].results) {
			p.value(t)
		}
		p.code = p.code.op(opReturn)
	default:
		p.setLocal()
	}
}

func (p *program) call() {
	n := len(p.funcs)
	if p.self >= n-leafFuncs {
		p.drop()
		return
	}
	callee := p.self + 1 + p.IntN(n-1-p.self)
	f := p.funcs[callee]
	for _, t := range []byte(f.params) {
		p.value(t)
	}
	if callee >= n-leafFuncs && p.IntN(2) == 0 {
		p.code = p.code.i32(p.Int32N(6))
		p.code = append(p.code.u(opCallIndirect, uint32(callee)), 0)
	} else {
		p.code = p.code.u(opCall, uint32(callee))
	}
	for range f.results {
		p.code = p.code.op(0x1a)
	}
}
