package guest

import (
	"runtime"
	"unsafe"

	"weir/abi"
)

//go:wasmexport weir_abi_1
func marker() {}

//go:wasmexport weir_alloc
func alloc(n uint32) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(Alloc(int(n))))
}

// Call is the body of a hook's export. The reply's place is packed as the
// carrier wants it; a failure is logged and traps, and so does a request that
// lies anywhere but in the room of the last weir_alloc.
func Call(hook abi.Hook, ptr unsafe.Pointer, n uint32) uint64 {
	if ptr != unsafe.Pointer(unsafe.SliceData(requestBuffer)) {
		fail(string(hook) + ": the request lies not in the room of weir_alloc")
	}
	reply, err := Serve(hook, int(n))
	if err != nil {
		fail(err.Error())
	}
	if hook == abi.HookConfigure {
		settle()
	}
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(reply))))
	return at<<32 | uint64(len(reply))
}

// headroom is how much a call may allocate before the heap has to grow. More
// makes the image larger, and with it every reset; memory grows by half a MiB.
const headroom = 512 << 10

// settle leaves free heap in the image that the host makes of a configured
// instance. Every call begins with that image, so the collector hardly ever
// runs, and a call that has to grow the memory costs the host its instance.
func settle() {
	ballast = make([]byte, headroom)
	ballast = nil
	for _, r := range registered {
		r.settle()
	}
	for range 3 { // after these the collector has what it needs itself, too
		runtime.GC()
	}
	stock()
}

var ballast []byte

// stock makes the allocator fetch a span of every small size, with pointers and
// without. The collector has taken them all away, and fetching one costs a call
// more than ten allocations from it.
func stock() {
	for n := 8; n <= stocked; n += 8 {
		noPointers = make([]byte, n)
		pointers = make([]*byte, n/8)
	}
	noPointers, pointers = nil, nil
}

// stocked is the size of the largest objects that an ordinary call allocates.
const stocked = 1 << 10

var (
	noPointers []byte
	pointers   []*byte
)

func fail(text string) {
	Log(abi.LogError, text)
	trap()
}

//go:wasmimport weir log
func weirLog(level int32, text string)

// Log hands a line to the host, which caps it.
func Log(level int, text string) { weirLog(int32(level), text) }

// trap executes unreachable, as a panic does in the end, but without printing a
// stack that nobody asked for.
func trap()
