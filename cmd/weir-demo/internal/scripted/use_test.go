package scripted

import "testing"

// A question that names a tool gets it used, and what it returned reported; a
// name that is not offered, or only part of a word, is no tool.
func TestUse(t *testing.T) {
	_, url := serve(t, Options{})
	tools := []string{"get_time", "get_user", "search_tickets"}
	text, calls, finish, _ := talkWith(t, url, tools, user("Use get_time and get_user."))
	if len(calls) != 2 || calls[0].Function.Name != "get_time" || calls[1].Function.Name != "get_user" || calls[0].Function.Arguments != "{}" || text == "" || finish != "tool_calls" {
		t.Errorf("got %q, %+v, %s", text, calls, finish)
	}
	if text, calls, _, _ := talkWith(t, url, tools, user("Use get_time."), result("12:00 UTC")); text != "get_time is done: 12:00 UTC" || len(calls) != 0 {
		t.Errorf("got %q, %+v", text, calls)
	}
	for _, question := range []string{"Use get_timer.", "Use set_time.", "What time is it?"} {
		if text, calls, _, _ := talkWith(t, url, tools, user(question)); text != help || len(calls) != 0 {
			t.Errorf("%s: got %q, %+v", question, text, calls)
		}
	}
}
