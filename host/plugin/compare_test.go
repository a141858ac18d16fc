package plugin

import (
	"bytes"
	"fmt"
	"testing"
)

// What restoreAll looks with sees every bit of a block, at every place and for
// lengths of all sorts; a bit that it missed would be one that a call leaves to
// the next.
func TestCompareSeesEveryBit(t *testing.T) {
	const ahead = copyBlock
	for _, size := range []int{copyBlock, 128, 256, 1, 127, 129, 4095} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			room := bytes.Repeat([]byte{0xff}, size+2) // neighbours do not count
			block, same := room[1:1+size], bytes.Repeat([]byte{0xa5}, size)
			clear(block)
			if !isZero(block, ahead) {
				t.Error("zeros are not zero")
			}
			for at := range block {
				block[at] = 1 << (at % 8)
				if isZero(block, ahead) {
					t.Errorf("byte %d is not seen", at)
				}
				block[at] = 0
			}
			copy(block, same)
			if !isEqual(block, same, ahead) {
				t.Error("equal blocks differ")
			}
			for at := range block {
				block[at] ^= 1 << (at % 8)
				if isEqual(block, same, ahead) || isEqual(same, block, ahead) {
					t.Errorf("a difference in byte %d is not seen", at)
				}
				block[at] = same[at]
			}
		})
	}
	if !isZero(nil, ahead) || !isEqual(nil, nil, ahead) || isEqual([]byte{0}, nil, ahead) {
		t.Error("nothing is zero and equal to itself, and to nothing else")
	}
}

// Every block of a memory is put back, whatever it had and gets.
func TestRestoreAll(t *testing.T) {
	const blocks = 9
	image := make([]byte, blocks*copyBlock)
	for n := 0; n < blocks; n += 2 { // the others are blank
		image[n*copyBlock+n*37] = byte(n + 1)
	}
	blank := blanks(image)
	for n, is := range blank {
		if is != (n%2 == 1) {
			t.Errorf("block %d: blank is %v", n, is)
		}
	}
	memory := bytes.Clone(image)
	for at := range memory {
		memory[at] ^= 1 << (at % 8)
		restoreAll(memory[at/copyBlock*copyBlock:][:copyBlock], image[at/copyBlock*copyBlock:][:copyBlock], blank[at/copyBlock:])
		if memory[at] != image[at] {
			t.Fatalf("byte %d is %d, in the image %d", at, memory[at], image[at])
		}
	}
	if !bytes.Equal(memory, image) {
		t.Error("the memory differs from the image")
	}
}
