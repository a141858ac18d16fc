package model

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/tmaxmax/go-sse"
)

// linger is what a provider gets after its last word, for the usage chunk,
// [DONE] and the end of the body; a connection whose body ended is used again.
const (
	lingerFinish = 2 * time.Second
	lingerDone   = 100 * time.Millisecond
)

const doneMark = "[DONE]"

// stream reads a streamed reply to its end.
func (k *call) stream(body io.Reader, onText func(string)) (*Reply, error) {
	a := assembly{limit: k.c.opts.MaxReply}
	done := false
	for event, err := range sse.Read(body, &sse.ReadConfig{MaxEventSize: k.c.opts.MaxEvent}) {
		if err != nil {
			return k.broken(&a, done, err, onText)
		}
		if done || event.Data == "" {
			continue
		}
		k.pause()
		if strings.TrimSpace(event.Data) == doneMark {
			done = true
			k.allow(lingerDone)
			continue
		}
		if err := a.event(event.Type, event.Data, onText); err != nil {
			return nil, err
		}
		if a.finish != "" {
			k.allow(min(lingerFinish, k.c.opts.BetweenChunks))
		} else {
			k.allow(k.c.opts.BetweenChunks)
		}
	}
	return a.endStream(done, onText)
}

// broken decides about a stream whose body failed: a reply that was complete
// is one all the same.
func (k *call) broken(a *assembly, done bool, err error, onText func(string)) (*Reply, error) {
	switch {
	case k.parent.Err() != nil:
		return nil, err
	case done || a.finish != "":
		return a.endStream(done, onText)
	case errors.Is(err, errTooLarge) || k.ctx.Err() != nil:
		return nil, err
	}
	return nil, bad("the stream broke off or held an event over the limit")
}

// endStream is end for streams, which may say nothing only with a finish reason.
func (a *assembly) endStream(done bool, onText func(string)) (*Reply, error) {
	if a.finish == "" && a.size == 0 {
		return nil, bad("the stream is empty")
	}
	return a.end(done, onText)
}

// whole reads a reply that is not streamed.
func (k *call) whole(body io.Reader) (*Reply, error) {
	limited := &boundedReader{r: body, left: int64(k.c.opts.MaxReply) + 1}
	data, err := io.ReadAll(limited)
	switch {
	case err != nil && k.ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, bad("the reply broke off or is over the limit")
	}
	a := assembly{limit: k.c.opts.MaxReply}
	c, err := decodeChunk(data)
	if err != nil {
		return nil, err
	}
	if !c.answered {
		return nil, bad("expected a choice with a message")
	}
	if err := a.add(&c, func(string) {}); err != nil {
		return nil, err
	}
	return a.end(true, func(string) {})
}
