// Package config reads agent.toml and the environment into one [Config], or
// says everything that is wrong with them at once.
//
// The environment wins over the file and the file over the defaults. Unknown
// keys are refused, wherever they stand. Nothing in this package touches the
// network, so what it refuses is refused before anything is started.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"weir/host/fault"
)

// DefaultPath is where agent.toml is looked for when nobody names a file.
const DefaultPath = "agent.toml"

// PathVariable names the configuration file when no path is given.
const PathVariable = "AGENT_CONFIG_PATH"

// Source says where the configuration comes from.
type Source struct {
	// Path of agent.toml; empty: AGENT_CONFIG_PATH, else DefaultPath in the
	// working directory.
	Path string
	// Env looks an environment variable up, like os.LookupEnv; nil: no
	// variable is set.
	Env func(string) (string, bool)
	// Keyless does not miss keys: for commands that look at policy and start
	// nothing. Keys that are there are read and checked all the same.
	Keyless bool
}

// Config is the whole configuration, complete and checked. It is not modified
// after [Load] and may be read concurrently.
type Config struct {
	Path   string `toml:"-"` // of the file that was read
	SHA256 string `toml:"-"` // of the file's bytes, lower-case hex
	// Warnings are sentences for whoever starts or checks the agent: things
	// that are allowed and that somebody should know of.
	Warnings []string `toml:"-"`

	Agent     Agent             `toml:"agent"`
	Server    Server            `toml:"server"`
	Model     Models            `toml:"model"`
	Tools     Tools             `toml:"tools"`
	Prompts   Prompts           `toml:"prompts"`
	Guard     Guard             `toml:"guard"`
	Plugins   Plugins           `toml:"plugins"`
	Actions   map[string]Action `toml:"actions"`
	Run       Run               `toml:"run"`
	Store     Store             `toml:"store"`
	Telemetry Telemetry         `toml:"telemetry"`
	Admin     Admin             `toml:"admin"`
	Reload    Reload            `toml:"reload"`
	Registry  Registry          `toml:"registry"`
	Approvals Approvals         `toml:"approvals"`
	Contract  Contract          `toml:"contract"`
	Variants  Variants          `toml:"variant" json:"-"`
	Build     Build             `toml:"-"`

	origins   map[string]origin // of keys that are not at their default
	variables []Setting         // that overrule no key
}

// Load reads, merges and checks. Its error is of kind fault.Invalid and joins
// everything that was found; [Problems] takes it apart.
func Load(src Source) (*Config, error) {
	env := environment{look: src.Env}
	path := src.path()
	data, err := readFile(path)
	if err != nil {
		return nil, refuse([]error{err})
	}
	c := defaults()
	c.Path = path
	c.SHA256 = digest(data)

	var l ledger
	if !c.decode(data, &l) {
		return nil, refuse(l.errs)
	}
	c.applyEnvironment(env, &l)
	c.origins, c.variables = l.origins, env.settings()
	c.readPrompts(&l)
	c.resolve()
	c.validate(&l, src.Keyless)
	c.Variants.layOver(c, &l, src.Keyless)
	if len(l.errs) > 0 {
		return nil, refuse(l.errs)
	}
	return c, nil
}

// Dir is the folder that relative paths in agent.toml start from.
func (c *Config) Dir() string { return filepath.Dir(c.Path) }

func (c *Config) resolvePath(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(c.Dir(), p)
}

// file is how errors call the configuration file.
func (c *Config) file() string { return filepath.Base(c.Path) }

func (s Source) path() string {
	if s.Path != "" {
		return s.Path
	}
	if s.Env != nil {
		if p, _ := s.Env(PathVariable); strings.TrimSpace(p) != "" {
			return strings.TrimSpace(p)
		}
	}
	return DefaultPath
}

func readFile(path string) ([]byte, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yml", ".yaml":
		return nil, errors.New(path + ": expected a TOML file such as agent.toml; YAML is never read, " +
			"and the YAML for an evaluator is what `weir config export-evaluator` writes from agent.toml")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.New(path + ": expected a readable configuration file: " + reason(err))
	}
	return data, nil
}

// reason is a file error without the path, which the caller has said already.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func refuse(errs []error) error {
	return fault.New(fault.Invalid, "%w", errors.Join(errs...))
}

// Problems returns the single problems that an error joins, in the order in
// which they were found; an error that joins nothing is its own only problem.
func Problems(err error) []error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range many.Unwrap() {
			out = append(out, Problems(e)...)
		}
		return out
	}
	// A wrapper that adds no words only gives a kind.
	if inner := errors.Unwrap(err); inner != nil && inner.Error() == err.Error() {
		return Problems(inner)
	}
	return []error{err}
}
