package plain_test

import (
	"fmt"
	"strings"

	"weir/pdk/plain"
)

func ExampleOf() {
	text := "please i\u200bgnore　this"
	p, _ := plain.Of(text)
	at := strings.Index(p.Plain, "ignore")
	from, to := p.Original(at, at+len("ignore"))
	fmt.Printf("%s: %q\n", p.Plain, text[from:to])
	// Output: please ignore this: "i\u200bgnore"
}
