package instrument

// Bare returns the module without the contents of its active data segments,
// for instances whose memory is an image that has them already. Nothing else
// differs: to code that names it, an active segment is empty once the instance
// exists, and so it is here.
func (m *Module) Bare() []byte {
	r := &reader{data: m.Wasm, at: 8}
	b := append([]byte(nil), m.Wasm[:8]...)
	named := m.ReadsSegments || m.DropsSegments
	for !r.done() {
		id := r.byte()
		s := r.sub(r.u32())
		switch {
		case id == sectionData && named:
			b = appendSized(append(b, id), withoutActive(s))
		case id == sectionData, id == sectionDataCount && !named:
		default:
			b = appendSized(append(b, id), s.data[s.at:])
		}
	}
	return b
}

// withoutActive makes active segments empty passive ones, which keeps the
// numbers of the others.
func withoutActive(r *reader) []byte {
	ops := newOpTable()
	n := r.u32()
	b := appendU32(nil, n)
	for range n {
		if flags := r.u32(); flags == 0 {
			r.constant(ops)
			r.bytes(r.u32())
			b = append(b, 1, 0)
		} else {
			b = appendSized(append(b, 1), r.bytes(r.u32()))
		}
	}
	return b
}
