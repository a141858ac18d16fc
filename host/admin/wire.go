package admin

import (
	"encoding/json"
	"time"
)

// Reply answers every request. Only those with the key get a status.
type Reply struct {
	Outcome string `json:"outcome,omitempty"` // swapped, unchanged, held or failed
	Error   string `json:"error,omitempty"`
	Status  Status `json:"status,omitzero"`

	Log    json.RawMessage `json:"log,omitempty"`
	Logs   json.RawMessage `json:"logs,omitempty"`
	Replay json.RawMessage `json:"replay,omitempty"` // the summary of a replay before a reload
}

// Status says which policy is active and what stands between it and the wanted
// one. Generations have 64 hex digits.
type Status struct {
	Active       Active        `json:"active"`
	Wanted       Wanted        `json:"wanted"`
	InSync       bool          `json:"in_sync"`              // active is what was wanted last, its variants and their shares included
	Building     bool          `json:"building"`             // something is under way
	LastError    *Failure      `json:"last_error,omitempty"` // of this process, also when later reloads worked
	Previous     string        `json:"previous,omitempty"`   // where rollback goes
	Held         string        `json:"held,omitempty"`       // rolled back from; a changed file does not bring it back
	Draining     []Draining    `json:"draining,omitempty"`
	Swaps        int           `json:"swaps"`
	Restart      []string      `json:"restart,omitempty"` // changed keys that wait for a restart
	Warnings     []string      `json:"warnings,omitempty"`
	ChangedTools []ChangedTool `json:"changed_tools,omitempty"` // calls of them are refused
}

// Active is the policy that new runs get.
type Active struct {
	Generation   string    `json:"generation"`
	Since        time.Time `json:"since"`
	Runs         int       `json:"runs"`
	ConfigPath   string    `json:"config_path"`
	ConfigSHA256 string    `json:"config_sha256"`
	Plugins      []Plugin  `json:"plugins"`
	Variants     []Variant `json:"variants,omitempty"`
}

// Variant is what a share of the users gets in place of the active policy. Its
// plugins are all that it runs.
type Variant struct {
	Name       string   `json:"name"`
	Share      float64  `json:"share"`
	Generation string   `json:"generation"`
	Runs       int      `json:"runs"`
	Plugins    []Plugin `json:"plugins"`
}

// Plugin is one module of a policy.
type Plugin struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
}

// Wanted is what was asked for last. Generation is empty when it could not be
// read far enough to have one.
type Wanted struct {
	Generation string    `json:"generation,omitempty"`
	Trigger    string    `json:"trigger"` // start, file, signal or admin
	At         time.Time `json:"at"`
}

// Failure is why the active policy stayed.
type Failure struct {
	Trigger string    `json:"trigger"`
	At      time.Time `json:"at"`
	Text    string    `json:"text"`
}

// Draining is an old policy whose runs have not ended.
type Draining struct {
	Generation string `json:"generation"`
	Runs       int    `json:"runs"`
}

// ChangedTool is a tool that the MCP server describes differently than when it
// was admitted. Offered is empty when it is gone.
type ChangedTool struct {
	Name     string `json:"name"`
	Admitted string `json:"admitted"`
	Offered  string `json:"offered,omitempty"`
}
