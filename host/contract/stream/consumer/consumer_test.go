package consumer

import "testing"

// The traps of 10.5, seen by each consumer: these streams are what a host must
// not send, so that the readers are known to notice.
func TestTraps(t *testing.T) {
	tests := []struct {
		name, stream   string
		page, eval     string
		pageErr, evErr string
	}{
		{"plain", "data: {\"value\":\"hi\"}\n\n", "hi", "hi", "", ""},
		{"scalars stay text", "data: {\"value\":\"100\"}\n\ndata: {\"value\":\"true\"}\n\n", "100true", "100true", "", ""},
		{"comment", ": keep-alive\n\ndata: {\"value\":\"hi\"}\n\n", "hi", "hi", "", ""},
		{"no last blank line", "data: {\"value\":\"hi\"}", "hi", "hi", "", ""},
		{"value is a number", "data: {\"value\":100}\n\n", "", "", "", ""},
		{"lone container", "data: {\"value\":\"[1]\"}\n\n", "", "", "", ""},
		{"raw NEL", "data: {\"value\":\"a\u0085b\"}\n\n", "a\u0085b", "", "", "a fragment that is no JSON"},
		{"raw LS", "data: {\"value\":\"a\u2028b\"}\n\n", "a\u2028b", "", "", "a fragment that is no JSON"},
		{"the evaluator's trap", "data: {\"value\":\"event: interaction_required\"}\n\n", "event: interaction_required", "", "", "the agent asked a human"},
		{"printed object", "data: {\"value\":\"x content='y' z\"}\n\n", "x content='y' z", "y", "", ""},
		{"error", "{\"error\":\"workflow_error\",\"message\":\"m\"}\n\ndata: {\"value\":\"late\"}\n\n", "", "", "m", "m"},
		{"error with data:", "{\"error\":\"workflow_error\",\"message\":\"data: m\"}\n\n", "", "", "data: m", ""},
		{"prompt without id", "event: interaction_required\ndata: {}\n\n", "", "", "an interaction without ids", "the agent asked a human"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, e := ReadPage([]byte(tt.stream)), Evaluate([]byte(tt.stream))
			if p.Text != tt.page || p.Err != tt.pageErr {
				t.Errorf("page: %q, error %q; want %q, %q", p.Text, p.Err, tt.page, tt.pageErr)
			}
			if e.Text != tt.eval || e.Err != tt.evErr {
				t.Errorf("evaluator: %q, error %q; want %q, %q", e.Text, e.Err, tt.eval, tt.evErr)
			}
		})
	}
}

func TestPageReadsAnyChunks(t *testing.T) {
	const stream = "data: {\"value\":\"é€😀\"}\n\nevent: interaction_required\ndata: {\"execution_id\":\"e\",\"interaction_id\":\"i\",\"prompt\":{}}\n\n"
	for cut := range len(stream) {
		p := ReadPage([]byte(stream[:cut]), []byte(stream[cut:]))
		if p.Text != "é€😀" || len(p.Prompts) != 1 || p.Err != "" {
			t.Fatalf("cut at %d: %+v", cut, p)
		}
	}
}
