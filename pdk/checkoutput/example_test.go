package checkoutput_test

import (
	"fmt"
	"strings"

	"weir/abi"
	"weir/pdk"
	"weir/pdk/checkoutput"
)

const word = "Voldemort"

func init() {
	checkoutput.Handle(func(q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		r := &abi.CheckOutputReply{HoldFrom: len(q.Text)}
		for at := 0; ; {
			i := strings.Index(q.Text[at:], word)
			if i < 0 {
				break
			}
			r.Edits = append(r.Edits, abi.Edit{Start: at + i, End: at + i + len(word), Replace: "<NAME>", Label: "NAME"})
			at += i + len(word)
		}
		if !q.Final {
			r.HoldFrom -= open(q.Text)
		}
		return r, nil
	})
}

// open returns how many of the last bytes may be the beginning of the word.
func open(text string) int {
	for n := min(len(word)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, word[:n]) {
			return n
		}
	}
	return 0
}

// A guard holds back only what could still become a match.
func ExampleHandle() {
	for _, request := range []string{
		`{"now":0,"seed":"0","stream_pos":0,"text":"They call him Volde"}`,
		`{"now":0,"seed":"0","stream_pos":14,"text":"Voldemort."}`,
		`{"now":0,"seed":"0","stream_pos":24,"text":" Vol","final":true}`,
	} {
		reply, err := pdk.Invoke(abi.HookCheckOutput, []byte(request))
		fmt.Println(string(reply), err)
	}
	// Output:
	// {"hold_from":14} <nil>
	// {"edits":[{"start":0,"end":9,"replace":"<NAME>","label":"NAME"}],"hold_from":10} <nil>
	// {"hold_from":4} <nil>
}
