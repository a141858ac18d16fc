package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/tetratelabs/wazero/api"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
)

// image is the state of an instance that is ready for calls: initialised,
// configured and warm. Every call begins with it.
type image struct {
	memory  *snapshot
	globals []uint64 // in the order of code.globals
	blank   []bool   // of its blocks: nothing but zeros (reset.go)
}

// introduction is what a module says before its first call, and the image of
// an instance that has said it. The image is nil for modules whose instances
// have more state than memory and globals.
type introduction struct {
	description *abi.Description
	settings    *abi.ConfigureReply
	image       *image
}

func (in *introduction) free() {
	if in.image != nil {
		in.image.memory.free()
	}
}

// imageKey names everything that an image depends on. The limit is no part of
// its meaning, but a module may find out about it.
type imageKey struct {
	digest string
	memory int
}

// imageKey returns the digest of (module, canonical configuration, prompt
// digests, instrumenter version).
func (p *Plugin) imageKey() (imageKey, error) {
	b := strictjson.AppendString([]byte(`{"module":`), p.digest)
	b = strictjson.AppendString(append(b, `,"instrumenter":`...), Instrumenter)
	b = append(append(b, `,"config":`...), p.config...)
	b = append(b, `,"prompts":[`...)
	for n, prompt := range p.prompts {
		if n > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(append(b, '['), prompt.Name)
		b = append(strictjson.AppendString(append(b, ','), digestOf([]byte(prompt.Text))), ']')
	}
	canonical, err := strictjson.Canonical(nil, append(b, `]}`...))
	if err != nil {
		return imageKey{}, fault.New(fault.Invalid, "plugin %s: configuration: %w", p.name, err)
	}
	sum := sha256.Sum256(canonical)
	return imageKey{digest: hex.EncodeToString(sum[:]), memory: p.limits.Memory}, nil
}

// capture copies the state of an instance.
func (i *instance) capture() (*image, error) {
	memory, err := newSnapshot(i.bytes())
	if err != nil {
		return nil, fault.New(fault.Internal, "image of %d bytes: %w", i.module.Memory().Size(), err)
	}
	globals := make([]uint64, len(i.globals))
	for n, g := range i.globals {
		globals[n] = g.Get()
	}
	return newImage(memory, globals), nil
}

func newImage(memory *snapshot, globals []uint64) *image {
	return &image{memory: memory, globals: globals, blank: blanks(memory.bytes())}
}

// bytes is the instance's whole memory.
func (i *instance) bytes() []byte {
	memory := i.module.Memory()
	view, _ := memory.Read(0, memory.Size())
	return view
}

// find looks up the globals that an image holds.
func (i *instance) find(names []string) error {
	for _, name := range names {
		g, ok := i.module.ExportedGlobal(name).(api.MutableGlobal)
		if !ok {
			return errors.New("the instrumented module lacks the global " + strconv.Quote(name))
		}
		i.globals = append(i.globals, g)
	}
	return nil
}

// adopt gives a new instance, whose memory is mapped from the image, the rest
// of the image.
func (i *instance) adopt(img *image) error {
	memory := i.module.Memory()
	if more := img.memory.size() - uint64(memory.Size()); more > 0 {
		if _, ok := memory.Grow(uint32(more / pageSize)); !ok {
			return failed(CodeMemory, "the memory of the image, %d bytes, does not fit", img.memory.size())
		}
	}
	i.image = img
	i.restoreGlobals()
	i.memory.grown = false
	return nil
}

func (i *instance) restoreGlobals() {
	for n, g := range i.globals {
		g.Set(i.image.globals[n])
	}
}

// reset puts the instance back to its image. It is false when that cannot be
// done: a memory that grew does not shrink.
func (i *instance) reset(r *resetter) bool {
	if i.image == nil || i.memory.grown {
		return false
	}
	if err := r.restore(i.memory.bytes(), i.image); err != nil {
		return false
	}
	i.restoreGlobals()
	if i.session.meter.refuelled {
		i.forgetFunctions()
	}
	return true
}
