// Command windowed is a guardrail that masks a word in whatever it is shown and
// knows nothing of hold_from. With hold_back in its configuration it says so, and
// the host drives it by a window; without, it lets parts of the word pass.
package main

import (
	"strings"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/pdk"
	"weir/pdk/checkoutput"
)

// word is set by configure and only read afterwards.
var word = "word"

func init() {
	pdk.Describe(abi.Description{Name: "windowed", Version: "0.1.0"})
	pdk.Configure(configure)
	checkoutput.Handle(func(q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		if q.Use == abi.UseDisplay {
			return mask(q.Texts...), nil
		}
		r := mask(q.Text)
		r.HoldFrom = len(q.Text)
		return r, nil
	})
}

func main() {}

func configure(q *abi.ConfigureRequest) (*abi.ConfigureReply, error) {
	reply := &abi.ConfigureReply{}
	d := strictjson.NewDecoder(q.Config)
	err := d.Object(func(name string) (err error) {
		switch name {
		case "word":
			word, err = d.String()
		case "hold_back":
			var n int64
			n, err = d.Int()
			reply.HoldBack = int(n)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	if err != nil || word == "" {
		return &abi.ConfigureReply{Error: "expected a word"}, nil
	}
	return reply, nil
}

func mask(texts ...string) *abi.CheckOutputReply {
	r := &abi.CheckOutputReply{}
	for i, text := range texts {
		for at := 0; ; {
			n := strings.Index(text[at:], word)
			if n < 0 {
				break
			}
			r.Edits = append(r.Edits, abi.Edit{Index: i, Start: at + n, End: at + n + len(word), Replace: "<WORD>", Label: "WORD"})
			at += n + len(word)
		}
	}
	return r
}
