package replay

import (
	"sort"
	"strconv"

	"weir/host/run"
)

// stream is the text that went into the recorded run's sink, as it is kept: the
// released text, in which edits stand in place of what they replaced.
//
//	raw   │ reply 1 ……[masked]…… │ reply 2 ………… ✂ … │
//	kept  │ reply 1 ……<LABEL>…… │ reply 2 ………… │ notice
type stream struct {
	rec   *run.Recorded
	text  string // released, without the notice
	ends  []int  // raw end of what each event said
	total int    // raw length of what models said
	marks []mark // in kept offsets
}

// mark is an edit of the recording in what is kept.
type mark struct {
	start, end int
	edit       run.Edit
}

func newStream(rec *run.Recorded) stream {
	st := stream{rec: rec, text: rec.Released}
	if stop := rec.Recording.Stop; stop != nil && len(st.text) >= len(stop.Notice) {
		st.text = st.text[:len(st.text)-len(stop.Notice)]
	}
	for _, h := range rec.Recording.Heard {
		st.total += h.Said
		st.ends = append(st.ends, st.total)
	}
	for _, e := range rec.Recording.Edits {
		if e.Start < st.total {
			at := st.kept(e.Start)
			st.marks = append(st.marks, mark{at, at + len(e.Replace), e})
		}
	}
	return st
}

// kept is the place in what is kept of a place in the raw text; inside an edit
// it is the edit's end.
func (st *stream) kept(raw int) int {
	shift := 0
	for _, e := range st.rec.Recording.Edits {
		if e.Start >= raw {
			break
		}
		if e.End > raw {
			return max(0, min(e.Start+shift+len(e.Replace), len(st.text)))
		}
		shift += len(e.Replace) - (e.End - e.Start)
	}
	return max(0, min(raw+shift, len(st.text)))
}

// said is the text of one event.
func (st *stream) said(event int) string {
	from := 0
	if event > 0 {
		from = st.ends[event-1]
	}
	a, b := st.kept(from), st.kept(st.ends[event])
	return st.text[min(a, b):b]
}

// all is the kept length of everything that models said.
func (st *stream) all() int { return st.kept(st.total) }

// own is where an edit stands in the text that the workflow itself added, which
// is stepped anew and masked anew.
func (st *stream) own(e run.Edit) (start, end int) {
	return st.all() + e.Start - st.total, st.all() + e.End - st.total
}

// touching returns the mark that a part of the kept text meets.
func (st *stream) touching(start, end int) *mark {
	i := sort.Search(len(st.marks), func(i int) bool { return st.marks[i].end > start })
	if i < len(st.marks) && st.marks[i].start < end {
		return &st.marks[i]
	}
	return nil
}

func callID(reply, index int) string {
	return "call_" + strconv.Itoa(reply) + "_" + strconv.Itoa(index+1)
}
