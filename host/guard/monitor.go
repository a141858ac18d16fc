package guard

import (
	"context"
	"errors"
	"sync"

	"weir/abi"
)

// errNoRoom ends a judgement that would have to wait for a model.
var errNoRoom = errors.New("the monitors' model calls are all in use")

const (
	codeNoRoom   = "no_room"
	codeTimeout  = "timeout"
	codeShutdown = "shutdown"
)

// monitors is where guards in monitor mode judge, for all runs of a chain.
//
//	run ─► watch ─► queue ─► at most MonitorCalls goroutines ─► Observer
//	         └─ no room: dropped
//
// A run hands over and goes on; it never waits. What it handed over may outlive
// it, within the queue's length and MonitorTimeout each, because the verdict on
// a run that was over at once is worth as much as any. Goroutines exist only
// while there is something to judge.
type monitors struct {
	calls int
	most  int
	asks  chan struct{} // one token a model call

	mu      sync.Mutex
	queue   []func()
	working int
	closed  bool
	idle    chan struct{} // closed when nobody works any more; nil unless close waits

	ctx    context.Context
	cancel context.CancelFunc
}

func (m *monitors) init(o Options) {
	m.calls, m.most = o.MonitorCalls, o.MonitorQueue
	m.asks = make(chan struct{}, o.MonitorAsks)
	m.ctx, m.cancel = context.WithCancel(context.Background())
}

// submit returns false when there is no room.
func (m *monitors) submit(job func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return false
	case m.working < m.calls:
		m.working++
		go m.work(job)
	case len(m.queue) < m.most:
		m.queue = append(m.queue, job)
	default:
		return false
	}
	return true
}

// work does a job and then what has come to wait meanwhile.
func (m *monitors) work(job func()) {
	for job != nil {
		job()
		job = m.next()
	}
}

func (m *monitors) next() func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) > 0 {
		job := m.queue[0]
		m.queue[0] = nil
		m.queue = m.queue[1:]
		return job
	}
	m.working--
	if m.working == 0 && m.idle != nil {
		close(m.idle)
		m.idle = nil
	}
	return nil
}

// close cancels what is being judged; what waits finds its context ended.
func (m *monitors) close(ctx context.Context) error {
	m.cancel()
	m.mu.Lock()
	m.closed = true
	if m.working == 0 {
		m.mu.Unlock()
		return nil
	}
	if m.idle == nil {
		m.idle = make(chan struct{})
	}
	idle := m.idle
	m.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *monitors) beginAsk() bool {
	select {
	case m.asks <- struct{}{}:
		return true
	default:
		return false
	}
}

func (m *monitors) endAsk() { <-m.asks }

// watch lets a guard in monitor mode judge beside the run, and reports what it
// would have done. Judge fills in the tally.
func (s *Session) watch(ctx context.Context, stage string, g *Guard, judge func(context.Context, *tally)) {
	t := &tally{guard: g}
	release := func() {}
	if s.opts.Hold != nil {
		if release = s.opts.Hold(); release == nil {
			s.drop(stage, t, codeShutdown)
			return
		}
	}
	// Spans of the judgement belong to the run, its end does not.
	ctx = context.WithoutCancel(ctx)
	if !s.chain.monitors.submit(func() {
		defer release()
		s.judgeWithin(ctx, stage, t, judge)
	}) {
		release()
		s.drop(stage, t, codeNoRoom)
	}
}

func (s *Session) judgeWithin(ctx context.Context, stage string, t *tally, judge func(context.Context, *tally)) {
	ctx, cancel := context.WithTimeout(ctx, s.chain.opts.MonitorTimeout)
	defer cancel()
	defer context.AfterFunc(s.chain.monitors.ctx, cancel)()
	if ctx.Err() == nil {
		judge(ctx, t)
	}
	switch {
	case errors.Is(t.err, errNoRoom):
		s.drop(stage, t, codeNoRoom)
	case s.chain.monitors.ctx.Err() != nil:
		s.drop(stage, t, codeShutdown)
	case ctx.Err() != nil:
		s.drop(stage, t, codeTimeout)
	default:
		t.verdict = would(t.verdict)
		s.observe(stage, t)
	}
}

// drop reports a judgement that did not come about.
func (s *Session) drop(stage string, t *tally, code string) {
	t.verdict, t.reasonCode, t.reason, t.err = VerdictDropped, code, "", nil
	s.observe(stage, t)
}

// would is what an enforcing guard's verdict is called of one that only judges.
func would(verdict string) string {
	switch verdict {
	case VerdictBlock:
		return VerdictWouldBlock
	case VerdictModify:
		return VerdictWouldModify
	}
	return verdict
}

// judge asks a guard of one of the verdict hooks.
func (s *Session) judge(ctx context.Context, hook abi.Hook, t *tally, call caller) {
	v, err := s.consult(ctx, hook, t, call)
	if err != nil {
		t.fail(err)
		return
	}
	t.take(v, false)
}

// watchAnswer lets the output guards in monitor mode judge an answer once it is
// complete. Their replies are a function of the text, so it comes to the same as
// showing them every delta, and costs a stream that nobody holds back nothing.
func (s *Session) watchAnswer(text string, over bool) {
	for _, g := range s.chain.output.watching {
		s.watch(s.opts.Context, StageOutput, g, func(ctx context.Context, t *tally) {
			st := newStream(s, []*Guard{g}, func(string) {}, func() {})
			st.advance(ctx, text, over, true)
			*t = *st.guards[0].verdict(st.cut)
		})
	}
}
