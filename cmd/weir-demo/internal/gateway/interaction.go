package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// answerTimeout bounds the call that answers a prompt, which must not wait for
// the run (3.6).
const answerTimeout = 10 * time.Second

// interaction is a question to the person who sent the conversation (3.4).
type interaction struct {
	ExecutionID   string `json:"execution_id"`
	InteractionID string `json:"interaction_id"`
	Prompt        prompt `json:"prompt"`
}

type prompt struct {
	InputType   string   `json:"input_type"`
	Text        string   `json:"text"`
	Placeholder string   `json:"placeholder"`
	Required    bool     `json:"required"`
	Options     []option `json:"options"`
}

type option struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Value       string `json:"value"`
	Description string `json:"description"`
}

// Answer is what the person does with one prompt: Choose or Write.
type Answer struct {
	Shown  []string // texts that must stand in the prompt's text
	Choose string   // the id of an option of a radio prompt
	Write  string   // the text for a text prompt
}

// respond finds the answer's form for a prompt, and what a person would see of
// it. An answer that the prompt does not offer is not sent.
func (a Answer) respond(p prompt) (response any, said string, err error) {
	for _, want := range a.Shown {
		if !strings.Contains(p.Text, want) {
			return nil, "", fmt.Errorf("the prompt does not show %q", want)
		}
	}
	switch {
	case !p.Required:
		return nil, "", errors.New("the prompt is not marked as required")
	case p.InputType == "text" && a.Write != "":
		return map[string]string{"type": "text", "text": a.Write}, a.Write, nil
	case p.InputType == "radio" && a.Choose != "":
		for _, o := range p.Options {
			if o.ID == a.Choose {
				return map[string]any{"type": "radio", "selected_option": o}, o.Label, nil
			}
		}
		return nil, "", fmt.Errorf("the prompt does not offer %q", a.Choose)
	}
	return nil, "", fmt.Errorf("a prompt of the kind %q was not expected here", p.InputType)
}

// answerer answers the prompts of one turn in their order.
func (g *Gateway) answerer(ctx context.Context, answers []Answer) func(interaction) error {
	next := 0
	return func(i interaction) error {
		if next == len(answers) {
			return errors.New("the agent asks a person, which was not expected here")
		}
		a := answers[next]
		next++
		response, said, err := a.respond(i.Prompt)
		if err != nil {
			return err
		}
		g.print.prompt(i.Prompt, a.Choose, said)
		return g.respond(ctx, i, response)
	}
}

// respond sends one answer: 204 is the only success (1.1).
func (g *Gateway) respond(ctx context.Context, i interaction, response any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{"response": response})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.responseURL(i), bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range g.headers() { // with a request id of its own
		req.Header.Set(name, value)
	}
	req.Header.Del("x-authenticated-email")
	req.Header.Set("Accept", "application/json")
	resp, err := g.client.Do(req)
	if err != nil {
		return errors.New("the agent service is unavailable for the answer")
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 2000)) // the status says enough
	if resp.StatusCode != http.StatusNoContent || len(text) > 0 {
		return fmt.Errorf("the answer got %d: %s", resp.StatusCode, bytes.TrimSpace(text))
	}
	return nil
}

func (g *Gateway) responseURL(i interaction) string {
	return "http://" + g.opts.Address + "/executions/" + url.PathEscape(i.ExecutionID) +
		"/interactions/" + url.PathEscape(i.InteractionID) + "/response"
}
