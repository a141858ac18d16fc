package config

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/abi"
	"weir/abi/strictjson"
)

// SystemPrompt is the name of the agent's own prompt in [prompts].
const SystemPrompt = "system"

// maxPrompt bounds a prompt file; far above what a model takes.
const maxPrompt = 1 << 20

// Prompts is [prompts]: names that plugins know, and their files. Policy.
type Prompts map[string]Prompt

// Prompt is one prompt file.
type Prompt struct {
	Path   string // as resolved
	Text   string // the file's bytes
	SHA256 string // of these bytes, lower-case hex
}

func (p *Prompts) decodeTable(d *decoder, path []string, table map[string]any) {
	*p = Prompts{}
	for _, name := range d.names(path, table) {
		file, ok := table[name].(string)
		if !d.expect(ok, child(path, name), "the path of a prompt file", table[name]) {
			continue
		}
		(*p)[name] = Prompt{Path: file}
	}
}

// readPrompts reads every prompt file.
func (c *Config) readPrompts(l *ledger) {
	for _, name := range slices.Sorted(maps.Keys(c.Prompts)) {
		c.readPrompt(name, l)
	}
}

func (c *Config) readPrompt(name string, l *ledger) {
	p := c.Prompts[name]
	path := []string{"prompts", name}
	if strings.TrimSpace(p.Path) == "" {
		l.key(c.file(), path, "expected the path of a prompt file")
		return
	}
	written := p.Path
	p.Path = c.resolvePath(written)
	data, err := os.ReadFile(p.Path)
	if err != nil {
		l.key(c.file(), path, "expected a readable file, %s: %s", written, reason(err))
		return
	}
	if err := checkPrompt(data); err != nil {
		l.key(c.file(), path, "%s: %v", written, err)
		return
	}
	p.Text, p.SHA256 = string(data), digest(data)
	c.Prompts[name] = p
}

// checkPrompt keeps a prompt's digest meaningful: the same words have the same
// bytes on every machine.
func checkPrompt(data []byte) error {
	switch {
	case len(data) > maxPrompt:
		return errors.New("expected at most 1 MiB")
	case bytes.HasPrefix(data, []byte("\ufeff")):
		return errors.New("expected no byte order mark")
	case !utf8.Valid(data):
		return errors.New("expected UTF-8")
	case bytes.IndexByte(data, '\r') >= 0:
		return errors.New("expected lines that end in LF, found CR")
	case len(bytes.TrimSpace(data)) == 0:
		return errors.New("expected text, the file is blank")
	}
	return nil
}

// PromptSHA256 is prompt_sha256 of the contract's section 7: the digest of the
// system prompt's bytes, placeholders unfilled.
func (c *Config) PromptSHA256() string { return c.Prompts[SystemPrompt].SHA256 }

// GuardPromptsSHA256 is guardrails_prompts_sha256 of the contract's section 7:
// the digest of the canonical JSON list of {content, max_tokens, task}, one for
// each prompt of each guardrail, in order. The task is the prompt's name, and
// max_tokens the guardrail's configuration key of that name; a guardrail
// without one has an entry without it.
func (c *Config) GuardPromptsSHA256() string { return digest(c.guardPrompts()) }

func (c *Config) guardPrompts() abi.Raw {
	b := []byte{'['}
	for _, p := range c.evaluated() {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = appendPlain(append(b, `{"content":`...), p.content)
		if p.bounded {
			b = strictjson.AppendInt(append(b, `,"max_tokens":`...), p.maxTokens)
		}
		b = append(appendPlain(append(b, `,"task":`...), p.task), '}')
	}
	return append(b, ']')
}

// appendPlain writes s as canonical JSON does, U+0085, U+2028 and U+2029 as
// they are.
func appendPlain(b []byte, s string) []byte {
	b, err := strictjson.Canonical(b, strictjson.AppendString(nil, s))
	if err != nil {
		panic("config: a written string is not JSON: " + err.Error())
	}
	return b
}
