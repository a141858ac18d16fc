package instrument

// Bare returns the module without its active data segments, for instances
// whose memory is an image that has their contents already. Nothing else
// differs. In a module whose code names segments they become passive instead
// of going away: their numbers stay, and the engine lets code read an active
// segment after it was copied, although the specification says it is empty
// then.
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

// withoutActive makes active segments passive.
func withoutActive(r *reader) []byte {
	ops := newOpTable()
	n := r.u32()
	b := appendU32(nil, n)
	for range n {
		if r.u32() == 0 {
			r.constant(ops)
		}
		b = appendSized(append(b, 1), r.bytes(r.u32()))
	}
	return b
}
