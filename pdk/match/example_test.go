package match_test

import (
	"fmt"

	"weir/pdk/match"
)

// A text that grows is scanned piece by piece. What stands before open will
// never be part of a match, so it need not be held back.
func ExampleSet_Scanner() {
	set, err := match.Compile([]match.Pattern{{ID: "mail", Expr: `\b\w+@\w+\.com\b`}}, match.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	scanner, text := set.Scanner(), ""
	for _, piece := range []string{"Write to ren", "ee@example", ".com", " today"} {
		text += piece
		found, open := scanner.Scan(text, false)
		for _, m := range found {
			fmt.Printf("%s %q, ", set.ID(m.Pattern), text[m.Start:m.End])
		}
		fmt.Printf("open %q\n", text[open:])
	}
	// Output:
	// open "ren"
	// open "renee@example"
	// open "renee@example.com"
	// mail "renee@example.com", open "today"
}

// A whole text is looked at at once: where each match is, which patterns occur,
// and which match all of it.
func ExampleCompile() {
	set, err := match.Compile([]match.Pattern{
		{ID: "ticket", Expr: `TKT-\d+`},
		{ID: "question", Expr: `(?i)show (?:me )?TKT-\d+`},
	}, match.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.All("TKT-1 and TKT-22"))
	fmt.Println(set.Occurring("Please show TKT-1."), set.Fitting("Show me TKT-1"))
	// Output:
	// [{0 0 5} {0 10 16}]
	// [0 1] [1]
}

// An expression that does not compile is named, with the reason for its author.
func ExampleExprError() {
	_, err := match.Compile([]match.Pattern{{Expr: "a"}, {Expr: "b*"}}, match.Options{})
	fmt.Println(err)
	// Output:
	// pattern 1: the expression matches the empty text
}

// A word character is Unicode's, as \w is in a pattern.
func ExampleIsWord() {
	fmt.Println(match.IsWord('é'), match.IsWord('-'))
	// Output:
	// true false
}
