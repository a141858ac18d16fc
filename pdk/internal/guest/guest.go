// Package guest is the guest's side of the direct carrier: the handlers that a
// plugin registered, and the buffers that requests and replies lie in.
package guest

import (
	"errors"
	"strconv"

	"weir/abi"
)

// A handler answers one hook: it appends the reply to b.
type handler func(b, request []byte) ([]byte, error)

// A plugin is one module and a module is one plugin, so its registration is
// the package's. It is complete before the first call and does not change.
var registered []struct {
	hook   abi.Hook
	handle handler
}

// Request is a message that can be read, Reply one that can be written.
type (
	Request[T any] interface {
		*T
		DecodeJSON([]byte) error
	}
	Reply[T any] interface {
		*T
		AppendJSON([]byte) []byte
	}
)

// Register makes f the handler of a hook. It panics when f is nil or the hook
// has a handler already.
func Register[Q, R any, PQ Request[Q], PR Reply[R]](hook abi.Hook, f func(*Q) (*R, error)) {
	if f == nil {
		panic("pdk: " + string(hook) + ": nil handler")
	}
	if Has(hook) {
		panic("pdk: " + string(hook) + ": registered twice")
	}
	handle := func(b, request []byte) ([]byte, error) {
		var q Q
		if err := PQ(&q).DecodeJSON(request); err != nil {
			return nil, errors.New("read the request: " + err.Error())
		}
		r, err := f(&q)
		if err != nil {
			return nil, err
		}
		if r == nil {
			return nil, errors.New("the handler returned neither a reply nor an error")
		}
		return PR(r).AppendJSON(b), nil
	}
	registered = append(registered, struct {
		hook   abi.Hook
		handle handler
	}{hook, handle})
}

// Has says whether a hook has a handler.
func Has(hook abi.Hook) bool { return find(hook) != nil }

func find(hook abi.Hook) handler {
	for _, r := range registered {
		if r.hook == hook {
			return r.handle
		}
	}
	return nil
}

// Invoke appends the reply of a hook's handler to b.
func Invoke(b []byte, hook abi.Hook, request []byte) ([]byte, error) {
	handle := find(hook)
	if handle == nil {
		return nil, errors.New(string(hook) + ": no handler is registered")
	}
	reply, err := handle(b, request)
	if err != nil {
		return nil, errors.New(string(hook) + ": " + err.Error())
	}
	return reply, nil
}

// The buffers of the direct carrier. They stay referenced from here, so the
// collector keeps them where the host was told that they are: the request until
// the next weir_alloc, the reply until the next call.
var requestBuffer, replyBuffer []byte

// minBuffer is enough for an ordinary request, so that the buffer which the
// first call makes is part of the instance's captured image.
const minBuffer = 64 << 10

// Alloc returns room for a request of n bytes. Its content is what the last
// request left there.
func Alloc(n int) []byte {
	if n > cap(requestBuffer) || requestBuffer == nil {
		requestBuffer = make([]byte, max(n, minBuffer))
	}
	requestBuffer = requestBuffer[:n]
	return requestBuffer
}

// Serve answers a hook with the first n bytes of what Alloc returned.
func Serve(hook abi.Hook, n int) ([]byte, error) {
	if n > len(requestBuffer) {
		return nil, errors.New(string(hook) + ": a request of " + strconv.Itoa(n) + " bytes lies not in the room of weir_alloc")
	}
	reply, err := Invoke(replyBuffer[:0], hook, requestBuffer[:n])
	if err != nil {
		return nil, err
	}
	replyBuffer = reply
	return reply, nil
}
