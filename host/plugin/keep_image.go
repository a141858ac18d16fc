package plugin

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"weir/abi"
)

// imageLayout changes with the layout of an entry.
const imageLayout = 1

// thisProgram tells builds of the host apart. What an introduction is also
// depends on what the host's functions answer while it is made and on how an
// instance is warmed: another build makes its own.
func thisProgram() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d bytes of %d", info.Size(), info.ModTime().UnixNano())
}

// introductionKey names everything that an introduction depends on. Limits are
// among it, because a module that does not get through with others must not
// seem to.
func (p *Plugin) introductionKey() string {
	return fmt.Sprintf("layout %d, engine %s, abi %d, program %s, image %s, limits %+v",
		imageLayout, Engine, abi.Version, p.runtime.program, p.key.digest, p.limits)
}

// recall returns an introduction that an earlier start has kept. The image has
// what configure has computed of the configuration and the prompts, which hold
// no secrets, and nothing of any call.
func (p *Plugin) recall() (*introduction, bool) {
	if !p.code.resettable { // it never had an image
		return nil, false
	}
	content, ok := p.runtime.images.get(p.introductionKey())
	if !ok {
		return nil, false
	}
	k, ok := readIntroduction(content, uint64(p.limits.Memory))
	if !ok || len(k.globals) != len(p.code.globals) || uint64(len(k.memory)) < p.memory {
		return nil, false
	}
	if p.checkDescription(k.description) != nil || p.checkSettings(k.settings) != nil {
		return nil, false
	}
	memory, err := newSnapshot(k.memory)
	if err != nil {
		return nil, false
	}
	return &introduction{description: k.description, settings: k.settings, image: newImage(memory, k.globals)}, true
}

// keep lets later starts recall an introduction.
func (p *Plugin) keep(in *introduction) {
	k := keptIntroduction{description: in.description, settings: in.settings, globals: in.image.globals, memory: in.image.memory.bytes()}
	if err := p.runtime.images.put(p.introductionKey(), k.append(nil)); err != nil {
		p.runtime.log.Warn("a plugin's image is not kept; the next start makes it again", "name", p.name, "error", firstLine(err.Error()))
	}
}

// keptIntroduction is an introduction as it lies on the disk.
//
//	content: description │ settings │ globals │ size of the memory │ for each block of 4 KiB, whether it is blank, │ blocks that are not
type keptIntroduction struct {
	description *abi.Description
	settings    *abi.ConfigureReply
	globals     []uint64
	memory      []byte // a multiple of pageSize
}

func (k *keptIntroduction) append(b []byte) []byte {
	b = appendText(b, k.description.AppendJSON(nil))
	b = appendText(b, k.settings.AppendJSON(nil))
	b = binary.AppendUvarint(b, uint64(len(k.globals)))
	for _, g := range k.globals {
		b = binary.AppendUvarint(b, g)
	}
	b = binary.AppendUvarint(b, uint64(len(k.memory)))
	blank := blanks(k.memory)
	for _, is := range blank {
		if is {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	for n, is := range blank {
		if !is {
			b = append(b, k.memory[n*copyBlock:][:copyBlock]...)
		}
	}
	return b
}

// readIntroduction reads an introduction whose memory has at most limit bytes.
// Nothing of it aliases content.
func readIntroduction(content []byte, limit uint64) (*keptIntroduction, bool) {
	d := keptReader{data: content}
	k := &keptIntroduction{description: new(abi.Description), settings: new(abi.ConfigureReply)}
	if k.description.DecodeJSON(bytes.Clone(d.bytes(d.number()))) != nil || k.description.Validate() != nil {
		return nil, false
	}
	if k.settings.DecodeJSON(bytes.Clone(d.bytes(d.number()))) != nil || k.settings.Validate() != nil {
		return nil, false
	}
	for n := d.number(); n > 0 && !d.bad; n-- {
		k.globals = append(k.globals, d.number())
	}
	k.memory = d.memory(limit)
	return k, !d.bad && len(d.data) == 0
}

func (d *keptReader) memory(limit uint64) []byte {
	size := d.number()
	if size > limit || size%pageSize != 0 {
		d.bad = true
		return nil
	}
	blank := d.bytes(size / copyBlock)
	if d.bad {
		return nil
	}
	memory := make([]byte, size)
	for n, is := range blank {
		switch is {
		case 0:
			copy(memory[n*copyBlock:], d.bytes(copyBlock))
		case 1:
		default:
			d.bad = true
		}
	}
	return memory
}
