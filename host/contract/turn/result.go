package turn

import (
	"strings"

	"weir/abi/strictjson"
	"weir/host/run"
)

// returned begins the text of several results (1.2).
const returned = "Tools returned: "

// results are those of n calls: from the history's last entry where that holds
// them as they were, else from the text.
func (q *request) results(n int) []run.CallResult {
	if e, ok := q.last(roleEnvironment); ok {
		return resultsOf(e.content, n)
	}
	return resultsFrom(q.task, n)
}

// resultsOf reads an environment entry: an object, or an array of several.
func resultsOf(content []byte, n int) []run.CallResult {
	if strictjson.NewDecoder(content).Kind() == strictjson.Array {
		list := elements(content)
		if n > 1 || len(list) == 1 {
			return each(list)
		}
	}
	if n > 1 && strictjson.NewDecoder(content).Kind() == strictjson.String {
		return resultsFrom(textOf(content), n)
	}
	return []run.CallResult{oneResult(content)}
}

// resultsFrom reads the text of a message: several results behind their prefix,
// JSON, what Python prints of a value, or plain text, which is the result of the
// one call or of the first.
func resultsFrom(text string, n int) []run.CallResult {
	rest, several := strings.CutPrefix(text, returned)
	value := valueOf(rest)
	if value == nil {
		return []run.CallResult{{Text: text}}
	}
	if strictjson.NewDecoder(value).Kind() == strictjson.Array && (several || n > 1) {
		if list := elements(value); n > 1 || len(list) == 1 {
			return each(list)
		}
	}
	return []run.CallResult{oneResult(value)}
}

// valueOf reads text as an object or an array of JSON or of Python; nil for
// what is neither.
func valueOf(text string) []byte {
	text = strings.TrimSpace(text)
	if text == "" || !strings.ContainsRune("{[(", rune(text[0])) {
		return nil
	}
	if raw := []byte(text); strictjson.Valid(raw) == nil {
		return raw
	}
	if value, err := fromPython(text); err == nil {
		return value
	}
	return nil
}

func elements(array []byte) (list [][]byte) {
	d := strictjson.NewDecoder(array)
	_ = d.Array(func() error { // it was found valid
		raw, err := d.Raw()
		list = append(list, raw)
		return err
	})
	return list
}

func each(list [][]byte) []run.CallResult {
	out := make([]run.CallResult, len(list))
	for i, raw := range list {
		out[i] = oneResult(raw)
	}
	return out
}

// oneResult is a value as models read it: text as it is, everything else as
// compact JSON. A status that says so marks a failure.
func oneResult(raw []byte) run.CallResult {
	d := strictjson.NewDecoder(raw)
	if d.Kind() == strictjson.String {
		return run.CallResult{Text: textOf(raw)}
	}
	compact, err := strictjson.Compact(nil, raw)
	if err != nil {
		compact = raw
	}
	r := run.CallResult{Text: string(compact)}
	switch textOf(members(raw)["status"]) {
	case "error", "failed", "failure", "policy_violation", "blocked":
		r.Failed = true
	}
	return r
}
