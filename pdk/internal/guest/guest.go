// Package guest is the guest's side of the direct carrier: the handlers that a
// plugin registered, and the buffers that requests and replies lie in.
package guest

import (
	"errors"
	"strconv"
	"unsafe"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/pdk/spare"
)

// A handler answers one hook: it reads a request and appends the reply to b.
type handler func(b []byte, request *strictjson.Decoder) ([]byte, error)

// A plugin is one module and a module is one plugin, so its registration is
// the package's. It is complete before the first call and does not change.
var registered []struct {
	hook   abi.Hook
	handle handler
	settle func() // makes spare requests
}

// Request is a message that can be read, Reply one that can be written.
type (
	Request[T any] interface {
		*T
		ReadJSON(*strictjson.Decoder) error
	}
	Reply[T any] interface {
		*T
		AppendJSON([]byte) []byte
	}
)

// Register makes f the handler of a hook. Ready, which may be nil, gets spare
// requests to be used. It panics when f is nil or the hook has a handler already.
func Register[Q, R any, PQ Request[Q], PR Reply[R]](hook abi.Hook, f func(*Q) (*R, error), ready func(*Q)) {
	if f == nil {
		panic("pdk: " + string(hook) + ": nil handler")
	}
	if Has(hook) {
		panic("pdk: " + string(hook) + ": registered twice")
	}
	var spares spare.Of[Q]
	handle := func(b []byte, request *strictjson.Decoder) ([]byte, error) {
		q := spares.Take()
		err := PQ(q).ReadJSON(request)
		if err == nil {
			err = request.End()
		}
		if err != nil {
			return nil, errors.New("read the request: " + err.Error())
		}
		r, err := f(q)
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
		settle func()
	}{hook, handle, func() { spares.Fill(spare.Enough, ready) }})
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

// Invoke appends the reply of a hook's handler to b. It may be called
// concurrently if the handler may be.
func Invoke(b []byte, hook abi.Hook, request []byte) ([]byte, error) {
	return answer(b, hook, strictjson.NewDecoder(request))
}

func answer(b []byte, hook abi.Hook, request *strictjson.Decoder) ([]byte, error) {
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
// collector keeps them where the host was told that they are: the reply until
// the next call, and the request, whose bytes are used once, as long as anything
// refers to them. So strings of a request need no copy.
//
//	room:  request │ request │ …  requestBuffer │ free
var (
	requestBuffer, room, replyBuffer []byte

	decoder strictjson.Decoder // of every request, one after the other
)

// minRoom is enough for many ordinary requests, so that calls find room in the
// instance's captured image.
const minRoom = 64 << 10

// Alloc returns room for a request of n bytes.
func Alloc(n int) []byte {
	if n > len(room) || room == nil {
		room = make([]byte, max(n, minRoom))
	}
	requestBuffer, room = room[:n:n], room[n:]
	return requestBuffer
}

// Serve answers a hook with the first n bytes of what Alloc returned.
func Serve(hook abi.Hook, n int) ([]byte, error) {
	if n > len(requestBuffer) {
		return nil, errors.New(string(hook) + ": a request of " + strconv.Itoa(n) + " bytes lies not in the room of weir_alloc")
	}
	decoder.Reset(unsafe.String(unsafe.SliceData(requestBuffer), n))
	reply, err := answer(replyBuffer[:0], hook, &decoder)
	if err != nil {
		return nil, err
	}
	replyBuffer = reply
	return reply, nil
}
