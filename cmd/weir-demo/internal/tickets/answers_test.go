package tickets

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/answers.txt")

// 5.2 and 5.7: what the tools answer about the shipped tickets, byte for byte.
func TestAnswers(t *testing.T) {
	c := connect(t)
	calls := [][2]string{
		{"search_tickets", `{}`}, {"search_tickets", `{"status":"open"}`}, {"search_tickets", `{"status":" Resolved","limit":3}`},
		{"search_tickets", `{"status":"closed"}`}, {"search_tickets", `{"limit":-7}`}, {"search_tickets", `{"status":"o_en' OR 1=1 --"}`},
		{"get_ticket", `{"ticket_id":"TKT-9"}`}, {"get_ticket", `{"ticket_id":""}`},
	}
	for _, ticket := range allTickets() {
		id, err := json.Marshal(ticket.ID)
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, [2]string{"get_ticket", `{"ticket_id":` + string(id) + `}`})
	}
	var got bytes.Buffer
	for _, call := range calls {
		text, failed, err := c.Call(t.Context(), call[0], []byte(call[1]))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "%s %s failed=%t\n%s\n\n", call[0], call[1], failed, text)
	}
	path := filepath.Join("testdata", "answers.txt")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the answers differ from %s:\n%s", path, got.Bytes())
	}
}
