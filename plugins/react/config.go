package main

import (
	"errors"
	"strconv"
	"strings"

	"weir/abi"
	"weir/abi/strictjson"
)

// loop is the workflow with its configuration.
type loop struct {
	temperature float64
	maxTokens   int
	budget      string // the sentence of 2.10, with maxCalls in it
	prompt      string // the system prompt, with its placeholders
}

// maxCalls stands for the number of tool calls that a run may make.
const maxCalls = "{max_tool_calls}"

// readConfig reads a configuration. Its error names the key.
func readConfig(raw abi.Raw) (*loop, error) {
	l := &loop{
		maxTokens: 4096,
		budget:    "The agent could not produce a final answer within " + maxCalls + " tool calls.",
	}
	d := strictjson.NewDecoder(raw)
	err := d.Object(func(name string) error { return l.member(d, name) })
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return nil, errors.New("config: " + err.Error())
	}
	return l, nil
}

func (l *loop) member(d *strictjson.Decoder, name string) (err error) {
	switch name {
	case "temperature":
		l.temperature, err = d.Float()
		if err == nil && (l.temperature < 0 || l.temperature > 2) {
			err = errors.New("expected 0 to 2")
		}
	case "max_tokens":
		l.maxTokens, err = readCount(d, 1<<20)
	case "budget_sentence":
		l.budget, err = d.String()
		if err == nil && strings.TrimSpace(l.budget) == "" {
			err = errors.New("expected a text that is not blank")
		}
	default:
		return strictjson.Unknown(name)
	}
	return at(name, err)
}

// at puts a key before an error's text.
func at(key string, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(key + ": " + err.Error())
}

func readCount(d *strictjson.Decoder, most int64) (int, error) {
	n, err := d.Int()
	if err == nil && (n < 1 || n > most) {
		err = errors.New("expected 1 to " + strconv.FormatInt(most, 10))
	}
	return int(n), err
}

func systemPrompt(prompts []abi.Prompt) (string, error) {
	for _, p := range prompts {
		if p.Name != promptName {
			continue
		}
		if strings.TrimSpace(p.Text) == "" {
			return "", errors.New("prompt " + promptName + ": blank")
		}
		return p.Text, nil
	}
	return "", errors.New("prompt " + promptName + ": missing")
}

const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "temperature": {"type": "number", "minimum": 0, "maximum": 2, "default": 0},
    "max_tokens": {"type": "integer", "minimum": 1, "maximum": 1048576, "default": 4096},
    "budget_sentence": {"type": "string", "minLength": 1}
  }
}`
