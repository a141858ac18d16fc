package plugin

import (
	"context"
	"slices"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// sdkMemory gives the guest and its kernel their memories, which together stay
// below one limit.
type sdkMemory struct {
	limit uint64
	used  uint64
	flags *linearMemory // of the instance: only what it remembers is used
	parts []*sdkPart
}

// sdkPart is one of the two memories.
type sdkPart struct {
	whole  *sdkMemory
	memory *linearMemory // nil: none is to be had
	size   uint64
}

// Allocate implements experimental.MemoryAllocator.
func (m *sdkMemory) Allocate(_, _ uint64) experimental.LinearMemory {
	part := &sdkPart{whole: m}
	part.memory, _ = newMemory(m.limit, 0, nil)
	m.parts = append(m.parts, part)
	return part
}

// Reallocate implements experimental.LinearMemory.
func (p *sdkPart) Reallocate(size uint64) []byte {
	var buf []byte
	if p.memory != nil && p.whole.used-p.size+size <= p.whole.limit {
		buf = p.memory.Reallocate(size)
	}
	if buf == nil {
		p.whole.flags.refused = true
		return nil
	}
	p.whole.used += size - p.size
	p.size = size
	return buf
}

// Free implements experimental.LinearMemory.
func (p *sdkPart) Free() {
	if p.memory != nil {
		p.memory.Free()
	}
}

// free frees what the SDK has not freed.
func (m *sdkMemory) free() {
	for _, part := range m.parts {
		part.Free()
	}
}

// fits tells whether the kernel finds room for a request. Up to kernelFree
// bytes it needs none that it has not.
func (m *sdkMemory) fits(request uint64) bool {
	return request <= kernelFree || m.used+request+2*pageSize <= m.limit
}

// kernelFree is a little less than what a kernel has free after its reset
// without growing, whatever it was used for before.
const kernelFree = 60 << 10

// kernel is the SDK's second module, in whose memory requests, replies and the
// guest's blocks are. Its own state stands at the beginning of that memory.
type kernel struct {
	memory api.Memory
	alloc  api.Function
	free   api.Function
	output api.Function
	stack  [2]uint64
}

// kernelOf looks up the kernel, once, and where the request is, once for a call.
func (g *sdkGuest) kernelOf(ctx context.Context) *kernel {
	k := &g.kernel
	if !g.entered {
		g.entered = true
		g.inputAt, _ = ctx.Value(extism.InputOffsetKey("inputOffset")).(uint64)
	}
	if k.memory == nil {
		m := ctx.Value(extism.PluginCtxKey("extism")).(api.Module)
		k.memory = m.ExportedMemory("memory")
		k.alloc, k.free, k.output = m.ExportedFunction("alloc"), m.ExportedFunction("free"), m.ExportedFunction("output_set")
	}
	return k
}

func (k *kernel) call(f api.Function, a, b uint64) uint64 {
	k.stack = [2]uint64{a, b}
	if err := f.CallWithStack(context.Background(), k.stack[:]); err != nil {
		panic(err)
	}
	return k.stack[0]
}

// heap knows the blocks that the guest has. The kernel finds a block by walking
// along all of them, by sizes that stand between them: a guest that writes over
// these makes it walk in a circle for ever. So writes outside of blocks are
// refused, and what walks is paid for by its length.
type heap struct {
	blocks []block // in ascending order
	count  int     // blocks that the kernel may have to pass
	last   int     // of blocks, where the last write went
}

type block struct{ at, size uint64 }

// walkUnits is the cost of what passes every block.
func (h *heap) walkUnits() int64 { return int64(h.count) * 8 }

func (h *heap) search(at uint64) (int, bool) {
	return slices.BinarySearchFunc(h.blocks, at, func(b block, at uint64) int {
		switch {
		case b.at < at:
			return -1
		case b.at > at:
			return 1
		}
		return 0
	})
}

func (h *heap) add(at, size uint64) {
	n, _ := h.search(at)
	h.blocks = slices.Insert(h.blocks, n, block{at, size})
	h.count++
}

// remove forgets a block; it is false when there is none at that place.
func (h *heap) remove(at uint64) bool {
	n, ok := h.search(at)
	if ok {
		h.blocks = slices.Delete(h.blocks, n, n+1)
	}
	return ok
}

// size is that of the block at a place; zero is none.
func (h *heap) size(at uint64) uint64 {
	if n, ok := h.search(at); ok {
		return h.blocks[n].size
	}
	return 0
}

// holds tells whether bytes lie within one block.
func (h *heap) holds(at, size uint64) bool {
	if h.last < len(h.blocks) && h.blocks[h.last].holds(at, size) {
		return true
	}
	n, exact := h.search(at)
	if !exact {
		n--
	}
	if n < 0 || !h.blocks[n].holds(at, size) {
		return false
	}
	h.last = n
	return true
}

func (b block) holds(at, size uint64) bool {
	return at >= b.at && at-b.at <= b.size && size <= b.size-(at-b.at)
}
