package plain

const (
	tagBase  = 0xE0000 // a tag is this far from the ASCII character it stands for
	fullBase = 0xFEE0  // as is a full-width form
)

// isTag reports whether r is a tag that spells a character. Flags of some
// regions are written with them; nothing else is.
func isTag(r rune) bool { return 0xE0020 <= r && r <= 0xE007E }

// narrow returns the form of r in plain text: r itself, another character, or
// a negative number when there is nothing to see.
func narrow(r rune) rune {
	switch {
	case r < 0xAD:
		return r
	case 0xFF01 <= r && r <= 0xFF5E:
		return r - fullBase
	case r == 0x3000: // the space of full width
		return ' '
	case invisible(r):
		return -1
	}
	return r
}

// invisible reports whether r has no width or only a direction. These are the
// code points of Unicode's property Default_Ignorable_Code_Point, Bidi_Control
// and Variation_Selector included, and the interlinear annotation characters.
func invisible(r rune) bool {
	switch {
	case r < 0x2000:
		switch r {
		case 0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5:
			return true
		}
		return 0x180B <= r && r <= 0x180F
	case r < 0x3000:
		return 0x200B <= r && r <= 0x200F || 0x202A <= r && r <= 0x202E || 0x2060 <= r && r <= 0x206F
	case r < 0x10000:
		return r == 0x3164 || 0xFE00 <= r && r <= 0xFE0F || r == 0xFEFF || r == 0xFFA0 || 0xFFF0 <= r && r <= 0xFFFB
	}
	return 0x1BCA0 <= r && r <= 0x1BCA3 || 0x1D173 <= r && r <= 0x1D17A || 0xE0000 <= r && r <= 0xE0FFF
}
