package strictjson

// names finds a repeated name in one object. Objects are small: a few names are
// compared one by one, on the stack; many go into a map, so that an object of
// thousands of members costs no square.
type names struct {
	few  [12][]byte
	n    int
	many map[string]struct{}
}

// add says whether name is new.
func (s *names) add(name []byte) bool {
	if s.many != nil {
		before := len(s.many)
		s.many[string(name)] = struct{}{}
		return len(s.many) > before
	}
	for _, have := range s.few[:s.n] {
		if string(have) == string(name) {
			return false
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = name
		s.n++
		return true
	}
	s.many = make(map[string]struct{}, 4*len(s.few))
	for _, have := range s.few {
		s.many[string(have)] = struct{}{}
	}
	s.many[string(name)] = struct{}{}
	return true
}
